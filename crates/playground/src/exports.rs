//! The same for JavaScript. Errors are thrown as `Error` with a sentence.

use crate::catalogue;
use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;

fn thrown(sentence: String) -> JsError {
    JsError::new(&sentence)
}

/// Panics appear in the console with their message.
#[wasm_bindgen(start)]
fn start() {
    console_error_panic_hook::set_once();
}

#[wasm_bindgen]
pub fn scenarios() -> String {
    catalogue::scenarios()
}

#[wasm_bindgen]
pub fn scenario_text(name: &str) -> Result<String, JsError> {
    catalogue::scenario_text(name).map(str::to_owned).map_err(thrown)
}

#[wasm_bindgen]
pub fn describe(toml: &str) -> Result<String, JsError> {
    catalogue::describe(toml).map_err(thrown)
}

#[wasm_bindgen]
pub struct Playground(crate::Playground);

#[wasm_bindgen]
impl Playground {
    #[wasm_bindgen(constructor)]
    pub fn new(toml: &str, policy: &str, seed: u64) -> Result<Self, JsError> {
        crate::Playground::new(toml, policy, seed).map(Self).map_err(thrown)
    }

    pub fn now(&mut self) -> f64 {
        self.0.now()
    }

    pub fn duration(&self) -> f64 {
        self.0.duration()
    }

    pub fn ended(&self) -> bool {
        self.0.ended()
    }

    pub fn advance(&mut self, seconds: f64) {
        self.0.advance(seconds);
    }

    pub fn step(&mut self) {
        self.0.step();
    }

    pub fn trace_hash(&mut self) -> String {
        self.0.trace_hash()
    }

    pub fn lanes(&self) -> String {
        self.0.lanes()
    }

    pub fn packets(&mut self) -> Vec<f32> {
        self.0.packets()
    }

    pub fn frame(&mut self) -> String {
        self.0.frame()
    }

    pub fn decisions(&self) -> String {
        self.0.decisions()
    }

    pub fn actions(&self) -> String {
        self.0.actions()
    }

    pub fn change(&mut self, path: usize, quantity: &str, value: f64) -> Result<(), JsError> {
        self.0.change(path, quantity, value).map_err(thrown)
    }

    pub fn mesh(&mut self) -> Result<String, JsError> {
        self.0.mesh().map_err(thrown)
    }

    pub fn choose_node(&mut self, node: Option<u32>) -> Result<(), JsError> {
        self.0.choose_node(node).map_err(thrown)
    }

    pub fn choose_ends(&mut self, from: u32, to: u32) -> Result<(), JsError> {
        self.0.choose_ends(from, to).map_err(thrown)
    }

    pub fn move_node(&mut self, node: u32, x: f64, y: f64) -> Result<(), JsError> {
        self.0.move_node(node, x, y).map_err(thrown)
    }

    pub fn release_node(&mut self, node: u32) -> Result<(), JsError> {
        self.0.release_node(node).map_err(thrown)
    }
}
