//! Embeds the page of the lab: the files of the folder `ANABRANCH_PAGE` at build time (`.ci/playground --build` makes it in
//! playground/dist). Without it `anabranch play` needs the folder.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-env-changed=ANABRANCH_PAGE");
    println!("cargo::rerun-if-changed=build.rs");
    let mut table = "/// Path and contents of each file.\npub const PAGE: &[(&str, &[u8])] = &[\n".to_owned();
    if let Some(folder) = env::var_os("ANABRANCH_PAGE").map(PathBuf::from) {
        let folder = folder.canonicalize()?;
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut files = Vec::new();
        collect(&folder, &mut files)?;
        files.sort();
        for file in files {
            let name = file.strip_prefix(&folder).unwrap_or(&file);
            let _ =
                writeln!(table, "    ({:?}, include_bytes!({:?})),", name.to_string_lossy(), file.to_string_lossy());
        }
    }
    table.push_str("];\n");
    let out = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    fs::write(out.join("page.rs"), table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
