//! The pages that say which test stands for which sentence of RFC 8684, and for which manner of Linux, name tests that exist.

#[test]
fn every_test_named_in_the_tables_exists() {
    let pages =
        [(include_str!("../../../../docs/rfc8684.md"), 90), (include_str!("../../../../docs/wire-profile.md"), 15)];
    pages.into_iter().for_each(|(page, least)| check(page, least));
}

fn check(page: &str, least: usize) {
    let modules = [
        ("addresses", include_str!("addresses.rs")),
        ("closing", include_str!("closing.rs")),
        ("data", include_str!("data.rs")),
        ("data_reinjection", include_str!("data_reinjection.rs")),
        ("fallback", include_str!("fallback.rs")),
        ("joining", include_str!("joining.rs")),
        ("manners", include_str!("manners.rs")),
        ("opening", include_str!("opening.rs")),
        ("shared_mapping", include_str!("shared_mapping.rs")),
    ];
    let mut named = 0;
    for code in page.split('`').skip(1).step_by(2).filter(|code| !code.ends_with('*')) {
        let Some((module, test)) = code.split_once("::").filter(|(module, _)| modules.iter().any(|m| m.0 == *module))
        else {
            continue;
        };
        // The interop tests have modules of these names too, and check what the page says of them themselves.
        let of_interop = ["addresses", "joining"].contains(&module) && page.contains("wire_profile::");
        if of_interop || test.ends_with("_ipv4") || test.ends_with("_ipv6") {
            continue;
        }
        named += 1;
        let source = modules.iter().find(|(name, _)| *name == module).map_or("", |(_, source)| *source);
        assert!(source.contains(&format!("\n#[test]\nfn {test}()")), "no test {module}::{test}");
    }
    assert!(named >= least, "{named} tests named");
}
