//! `list`: all policies, generated from the tables of the families.

#[cfg(feature = "lab")]
mod lab;

use crate::console::print;
use anabranch_policy::combination::Family;
use anabranch_settings::baseline::{self, Baseline};
use anabranch_settings::connection::{SETTINGS, Setting};
use anabranch_settings::contender::{
    Contender, DATAGRAM, DATAGRAM_DECIDES, MemberInfo, datagram_members, decides, members,
};
use anabranch_settings::diagnostic::Diagnostic;
use serde_json::{Value, json};

pub fn list(as_json: bool) -> Result<(), Diagnostic> {
    let text = if as_json { format!("{:#}\n", json_lists()?) } else { plain_lists()? };
    print(&text);
    Ok(())
}

/// Families of combinations, then that of datagrams: name, what it decides, members.
fn families() -> impl Iterator<Item = (&'static str, &'static str, Vec<MemberInfo>)> {
    let of_combinations = Family::ALL.into_iter().map(|family| (family.name(), decides(family), members(family)));
    of_combinations.chain([(DATAGRAM, DATAGRAM_DECIDES, datagram_members())])
}

fn plain_lists() -> Result<String, Diagnostic> {
    let mut text = String::new();
    for (name, decides, members) in families() {
        text.push_str(&format!("{name}: {decides}\n"));
        if members.is_empty() {
            text.push_str("  none yet\n");
        }
        for member in members {
            text.push_str(&describe(&member));
        }
        text.push('\n');
    }
    text.push_str("connection: what a scenario's [connection] may say\n");
    for setting in SETTINGS {
        let (name, default, values, summary) = (setting.name, setting.default(), setting.values(), setting.summary);
        text.push_str(&format!("  {name} = {default} ({values}): {summary}\n"));
    }
    text.push_str("\nbaselines, for --baseline and --policy\n");
    baseline::all().iter().for_each(|baseline| text.push_str(&describe_baseline(baseline)));
    text.push_str("\nready combinations, for --policy\n");
    for ready in combinations() {
        text.push_str(&format!("  {}: {}\n", ready.name, ready.describe()));
    }
    #[cfg(feature = "lab")]
    text.push_str(&lab::plain()?);
    Ok(text)
}

fn combinations() -> Vec<Contender> {
    [Contender::ready(), Contender::partially_reliable(), Contender::readings()].concat()
}

fn describe(member: &MemberInfo) -> String {
    let mut text = format!("  {}\n      {}\n      source: {}\n", member.name, member.summary, member.source);
    for parameter in &member.parameters {
        let (name, default, values) = (parameter.name, &parameter.default, &parameter.values);
        text.push_str(&format!("      {name} = {default} ({values}): {}\n", parameter.summary));
    }
    text
}

fn describe_baseline(baseline: &Baseline) -> String {
    let mut text = format!("  {}: {}\n", baseline.name, baseline.summary);
    for (name, value) in baseline.values() {
        text.push_str(&format!("      {name} = {value}\n"));
    }
    for reason in &baseline.reasons {
        text.push_str(&format!("      why {}: {}\n", reason.of.join(", "), reason.text));
        text.push_str(&format!("          source: {}\n", reason.source));
    }
    for sentence in &baseline.not_modelled {
        text.push_str(&format!("      not modelled: {sentence}\n"));
    }
    text
}

fn json_baseline(baseline: &Baseline) -> Value {
    let values: Vec<Value> =
        baseline.values().iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let reason = |r: &baseline::Reason| json!({"of": r.of, "text": r.text, "source": r.source});
    let reasons: Vec<Value> = baseline.reasons.iter().map(reason).collect();
    json!({
        "name": baseline.name, "label": baseline.label, "summary": baseline.summary, "values": values,
        "reasons": reasons, "not_modelled": baseline.not_modelled
    })
}

fn json_lists() -> Result<Value, Diagnostic> {
    let member = |member: MemberInfo| {
        let parameters: Vec<Value> = member
            .parameters
            .iter()
            .map(|p| json!({"name": p.name, "default": p.default, "values": p.values, "summary": p.summary}))
            .collect();
        json!({
            "name": member.name, "summary": member.summary, "source": member.source, "parameters": parameters
        })
    };
    let families: Vec<Value> = families()
        .map(|(name, decides, members)| {
            let members: Vec<Value> = members.into_iter().map(member).collect();
            json!({"family": name, "decides": decides, "members": members})
        })
        .collect();
    let setting =
        |s: &Setting| json!({"name": s.name, "default": s.default(), "values": s.values(), "summary": s.summary});
    let settings: Vec<Value> = SETTINGS.iter().map(setting).collect();
    let baselines: Vec<Value> = baseline::all().iter().map(json_baseline).collect();
    let combination = |ready: Contender| json!({"name": ready.name, "policies": ready.describe()});
    let combinations: Vec<Value> = combinations().into_iter().map(combination).collect();
    #[cfg_attr(not(feature = "lab"), allow(unused_mut, reason = "nothing is added"))]
    let mut lists = json!({
        "families": families, "connection": settings, "baselines": baselines, "combinations": combinations
    });
    #[cfg(feature = "lab")]
    lab::add_json(&mut lists)?;
    Ok(lists)
}
