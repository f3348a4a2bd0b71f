//! `bind INPUT.wasm DIRECTORY`: writes the JavaScript, its types and the WebAssembly for browsers.

use std::error::Error;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(input), Some(directory)) = (arguments.next(), arguments.next()) else {
        return Err("usage: bind INPUT.wasm DIRECTORY".into());
    };
    Bindgen::new().input_path(input).web(true)?.typescript(true).remove_name_section(true).generate(directory)?;
    Ok(())
}
