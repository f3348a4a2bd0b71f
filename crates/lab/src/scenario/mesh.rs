//! Parses an ad-hoc network: `[mesh]` instead of `[[paths]]`, and the lanes of contenders.

use super::model::{Mesh, Path};
use anabranch_policy::rate::Rate;
use anabranch_routing::lanes::{LaneInterfaces, LanePolicy, LaneSettings, PathMode};
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_settings::contender::MeshRoutes;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::reader::{Item, Reader};
use anabranch_sim::mesh::paper::network::LANES;

/// Names of LSAFullness values.
const FULLNESS: [(&str, LsaFullness); 6] = [
    ("minimal", LsaFullness::Minimal),
    ("min_cost", LsaFullness::MinCost),
    ("min_cost_2", LsaFullness::MinCostRedundant),
    ("mdr_full", LsaFullness::MdrFull),
    ("full", LsaFullness::Full),
    ("multipath", LsaFullness::Multipath(LANES as u8 - 1)),
];

/// Parses `[mesh]`: the network, and its lanes as the scenario's paths.
pub fn mesh(top: &Reader<'_>) -> Result<Option<(Mesh, Vec<Path>)>, Diagnostic> {
    let Some(item) = top.get("mesh") else { return Ok(None) };
    for key in ["paths", "shared"] {
        if let Some(item) = top.get(key) {
            return Err(item.error(format!("a scenario with a [mesh] has no [[{key}]]: its lanes are the paths")));
        }
    }
    let table = item.table("a mesh", &["rates", "reservations", "routes"])?;
    let rates_item = table.required("rates")?;
    let rates = rates_item.list()?.iter().map(Item::quantity).collect::<Result<Vec<Rate>, _>>()?;
    let rates: [Rate; LANES] = rates.try_into().map_err(|given: Vec<Rate>| {
        rates_item.error(format!("{} rates are not possible: a node has {LANES} radios", given.len()))
    })?;
    let kinds: Vec<_> = [("static", None)].into_iter().chain(FULLNESS.map(|(word, kind)| (word, Some(kind)))).collect();
    let routers = table.get("routes").map_or(Ok(None), |item| item.word(&kinds))?;
    let lane = |at| Path { name: format!("e{at}"), links: Vec::new(), background: None };
    let mesh = Mesh { rates, reservations: table.flag("reservations", true)?, routers };
    Ok(Some((mesh, (0..LANES).map(lane).collect())))
}

/// Parses the `mesh` of a contender; a `forecaster` of its own enables predicted routes.
pub fn routes(policy: &Reader<'_>) -> Result<MeshRoutes, Diagnostic> {
    let lanes = LaneSettings { paths: PathMode::Full, ..LaneSettings::default() };
    let predicted = policy.get("forecaster").is_some();
    let mut routes = MeshRoutes { lanes, predicted, ..MeshRoutes::default() };
    let Some(item) = policy.get("mesh") else { return Ok(routes) };
    let table = item.table(
        "a policy's mesh",
        &["interfaces", "next_hops", "lane_policy", "routes", "two_hop_refresh", "flood_suspects", "link_cost"],
    )?;
    if let Some(item) = table.get("interfaces") {
        routes.lanes.interfaces = item.word(&[("real", LaneInterfaces::Real), ("virtual", LaneInterfaces::Virtual)])?;
    }
    if let Some(item) = table.get("next_hops") {
        routes.lanes.paths = item.word(&[("all", PathMode::Full), ("one", PathMode::Part)])?;
    }
    if let Some(item) = table.get("lane_policy") {
        let words = [("spread", LanePolicy::Spread), ("paper", LanePolicy::Paper), ("disjoint", LanePolicy::Disjoint)];
        routes.lanes.policy = item.word(&words)?;
    }
    routes.fullness = table.get("routes").map(|item| item.word(&FULLNESS)).transpose()?;
    if let Some(item) = table.get("link_cost") {
        routes.etx = item.word(&[("hops", false), ("etx", true)])?;
    }
    routes.flood_suspects = table.flag("flood_suspects", false)?;
    let refresh = table.get("two_hop_refresh").map(|item| item.count(1..=100)).transpose()?;
    routes.two_hop_refresh = refresh.map(|count| count as u16);
    Ok(routes)
}
