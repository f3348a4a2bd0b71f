//! Formats answers of a running router as tables.

use crate::table;
use anabranch_router::Question;
use serde_json::Value;

/// Columns of a list: heading and key.
type Columns = &'static [(&'static str, &'static str)];

const NEIGHBORS: Columns = &[
    ("neighbor", "router"),
    ("family", "family"),
    ("interface", "interface"),
    ("state", "state"),
    ("level", "level"),
    ("cost", "cost"),
    ("dependent", "dependent"),
    ("routable", "routable"),
    ("heard", "heard_seconds_ago"),
    ("address", "address"),
];

const DATABASE: Columns = &[
    ("type", "type"),
    ("id", "id"),
    ("advertising", "advertising_router"),
    ("family", "family"),
    ("interface", "interface"),
    ("age", "age"),
    ("sequence", "sequence"),
    ("bytes", "bytes"),
];

const FORECAST: Columns = &[
    ("neighbor", "router"),
    ("family", "family"),
    ("interface", "interface"),
    ("state", "state"),
    ("up", "probability_up"),
    ("horizon", "horizon_seconds"),
    ("routes", "routes_by_it"),
];

/// The answer as text.
pub fn text(question: Question, answer: &Value) -> String {
    match question {
        Question::Status => format!("{answer:#}\n"),
        Question::Neighbors => list(NEIGHBORS, answer),
        Question::Database => list(DATABASE, answer),
        Question::Forecast => list(FORECAST, answer),
        Question::Routes => routes(answer),
    }
}

fn list(columns: Columns, answer: &Value) -> String {
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    let rows = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| columns.iter().map(|(_, key)| cell(&row[*key])).collect()).collect();
    table::render(&heads, &rows)
}

/// One row per next hop.
fn routes(answer: &Value) -> String {
    let mut rows = Vec::new();
    for route in answer.as_array().map(Vec::as_slice).unwrap_or_default() {
        let mut start =
            vec![cell(&route["prefix"]), cell(&route["cost"]), cell(&route["router"]), cell(&route["installed"])];
        let hops = route["next_hops"].as_array().map(Vec::as_slice).unwrap_or_default();
        if hops.is_empty() {
            start.extend(["-", "-", "-", "-"].map(str::to_owned));
            rows.push(start.clone());
        }
        for hop in hops {
            let mut row = start.clone();
            row.extend([&hop["router"], &hop["interface"], &hop["address"], &hop["weight"]].map(cell));
            rows.push(row);
            // Values common to all next hops are shown once.
            start = vec![String::new(); 4];
        }
    }
    table::render(&["network", "cost", "of", "in kernel", "next hop", "interface", "address", "weight"], &rows)
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => {
            number.as_f64().filter(|_| number.is_f64()).map_or(number.to_string(), |real| format!("{real:.2}"))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_route_with_two_next_hops_has_two_rows() {
        let hop = |router: &str| json!({"router": router, "interface": "e0", "address": "fe80::1", "weight": 1});
        let answer = json!([{
            "prefix": "10.0.0.8/32", "cost": 3, "router": "10.0.0.8", "installed": true,
            "next_hops": [hop("10.0.0.2"), hop("10.0.0.3")],
        }]);
        let text = text(Question::Routes, &answer);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[2].starts_with("10.0.0.8/32     3  10.0.0.8        yes  10.0.0.2"), "{text}");
        assert!(lines[3].trim_start().starts_with("10.0.0.3"), "{text}");
    }
}
