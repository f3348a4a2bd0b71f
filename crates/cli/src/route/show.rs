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
    ("bfd", "bfd"),
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
        Question::Status => status(answer),
        Question::Neighbors => list(NEIGHBORS, answer),
        Question::Database => list(DATABASE, answer),
        Question::Forecast => list(FORECAST, answer),
        Question::Routes => routes(answer),
    }
}

/// The router, its interfaces, its packets by type, what its protocol did, and what it dropped by reason; each as a table.
fn status(answer: &Value) -> String {
    let parts = [single(answer), interfaces(answer), packets(answer), protocol(answer), dropped(answer)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The values of the router as a whole.
fn single(answer: &Value) -> String {
    let values = answer.as_object().into_iter().flatten().filter(|(key, _)| *key != "bfd");
    let bfd =
        answer["bfd"].as_object().into_iter().flatten().map(|(key, value)| (format!("bfd {}", words(key)), value));
    let values = values.map(|(key, value)| (words(key), value)).chain(bfd);
    let plain = values.filter(|(_, value)| !value.is_array() && !value.is_object());
    table::render(&["router", ""], &plain.map(|(key, value)| vec![key, cell(value)]).collect::<Vec<_>>())
}

/// The words of a key.
fn words(key: &str) -> String {
    key.replace('_', " ")
}

/// What each instance counts besides packets.
fn protocol(answer: &Value) -> String {
    let mut rows = Vec::new();
    for instance in elements(answer, "instances") {
        let counts = instance.as_object().into_iter().flatten();
        let counts = counts.filter(|(key, count)| *key != "instance" && count.is_number());
        rows.extend(counts.map(|(key, count)| vec![words(key), cell(&instance["family"]), cell(count)]));
    }
    if rows.is_empty() { String::new() } else { table::render(&["protocol", "family", "times"], &rows) }
}

/// The elements of a list in an object.
fn elements<'a>(object: &'a Value, key: &str) -> &'a [Value] {
    object[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn interfaces(answer: &Value) -> String {
    let mut rows = Vec::new();
    for instance in elements(answer, "instances") {
        for interface in elements(instance, "interfaces") {
            let of = elements(answer, "interfaces").iter().find(|one| one["name"] == interface["name"]);
            let address = of.map_or("-".to_owned(), |one| cell(&one["link_local"]));
            let keys = ["name", "state", "parent", "backup_parent"];
            let mut row: Vec<String> = keys.iter().map(|key| cell(&interface[*key])).collect();
            row.insert(1, cell(&instance["family"]));
            row.push(address);
            rows.push(row);
        }
    }
    table::render(&["interface", "family", "state", "parent", "backup parent", "address"], &rows)
}

fn packets(answer: &Value) -> String {
    let mut rows = Vec::new();
    for instance in elements(answer, "instances") {
        for (kind, sent) in instance["sent_packets"].as_object().into_iter().flatten() {
            let others = [&instance["sent_bytes"][kind], &instance["received_packets"][kind]].map(cell);
            let mut row = vec![words(kind), cell(&instance["family"]), cell(sent)];
            row.extend(others);
            rows.push(row);
        }
    }
    table::render(&["packets", "family", "sent", "bytes", "received"], &rows)
}

/// What was dropped: by a router, or before it could be given to one.
fn dropped(answer: &Value) -> String {
    let of_instances = elements(answer, "instances").iter().flat_map(|instance| {
        let counts = instance["dropped"].as_object().into_iter().flatten();
        counts.map(|(reason, count)| (reason, cell(&instance["family"]), count))
    });
    let refused = answer["refused"].as_object().into_iter().flatten();
    let all = of_instances.chain(refused.map(|(reason, count)| (reason, "-".to_owned(), count)));
    let rows: Vec<Vec<String>> = all.map(|(reason, family, count)| vec![words(reason), family, cell(count)]).collect();
    if rows.is_empty() { String::new() } else { table::render(&["dropped because of", "family", "times"], &rows) }
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
    fn the_status_is_a_table_that_tells_why_packets_were_dropped() {
        let answer = json!({
            "router_id": "10.0.0.1", "table": 199, "refused": { "checksum": 2 },
            "interfaces": [{ "name": "e0", "up": true, "link_local": "fe80::1" }],
            "instances": [{
                "family": "ipv4",
                "interfaces": [{ "name": "e0", "state": "mdr", "parent": "10.0.0.1", "backup_parent": null }],
                "sent_packets": { "hello": 7 }, "sent_bytes": { "hello": 700 }, "received_packets": { "hello": 6 },
                "dropped": { "hello_interval": 3 }, "instance": 64, "restarts_helped": 4,
            }],
            "bfd": { "lost_neighbors": 5 },
        });
        let text = text(Question::Status, &answer);
        let has = |words: &[&str]| text.lines().any(|line| line.split_whitespace().eq(words.iter().copied()));
        assert!(has(&["router", "id", "10.0.0.1"]), "{text}");
        assert!(has(&["e0", "ipv4", "mdr", "10.0.0.1", "-", "fe80::1"]), "{text}");
        assert!(has(&["hello", "ipv4", "7", "700", "6"]), "{text}");
        assert!(has(&["restarts", "helped", "ipv4", "4"]) && has(&["bfd", "lost", "neighbors", "5"]), "{text}");
        assert!(has(&["hello", "interval", "ipv4", "3"]) && has(&["checksum", "-", "2"]), "{text}");
        assert!(!text.contains('{'), "{text}");
    }

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
