//! `up` in network namespaces: two uplinks behind NATs, a server, and a target behind it. Needs root, TUN, `ip`, `nft`,
//! `cc` and `python3`; otherwise every test counts as ignored, with the reason.

mod clock;
mod flows;
mod mishaps;
pub mod scene;
mod straight;
mod traffic;

use anabranch_system::{Need, missing};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    let missing =
        missing(&[Need::Tun, Need::Programs(&["ip", "nft", "python3", "setpriv", "unshare", "cc"]), Need::Namespaces]);
    if let Some(reason) = &missing {
        eprintln!("skipped up: {reason}");
    }
    let tests: [(&str, fn()); 35] = [
        ("everything_goes_through_the_server_and_nothing_past_it", || traffic::everything(false)),
        ("everything_goes_through_the_server_inside_udp", || traffic::everything(true)),
        ("after_a_kill_the_old_way_is_taken_and_the_next_start_cleans", traffic::killed),
        ("it_fails_when_another_program_has_removed_its_device", mishaps::device_is_removed),
        ("a_key_that_changes_in_its_file_is_told_to_need_a_restart", mishaps::key_changes),
        ("rules_and_routes_that_another_program_has_removed_are_restored", || mishaps::rules_are_removed(true)),
        ("those_of_uplinks_that_another_program_has_removed_are_restored_too", || mishaps::rules_are_removed(false)),
        ("they_are_restored_without_ipv6_where_that_was_switched_off", mishaps::rules_are_removed_without_ipv6),
        ("a_server_at_an_address_of_this_host_is_refused", mishaps::server_is_this_host),
        ("an_uplink_may_be_named_twice", mishaps::named_twice),
        ("routes_of_a_vpn_for_half_of_all_addresses_keep_it_from_nothing_and_are_told", mishaps::halves),
        ("without_a_terminal_for_the_live_view_nothing_is_set_up", mishaps::no_terminal),
        ("a_server_that_falls_silent_is_told_of_soon_and_when_it_answers_again", mishaps::server_is_silent),
        ("that_only_one_end_has_udp_is_told", mishaps::udp_at_one_end),
        ("a_kill_switch_holds_until_it_is_put_down", traffic::kill_switch),
        ("a_kill_switch_holds_over_ipv6_whatever_the_port", traffic::kill_switch_over_ipv6),
        ("a_server_with_a_name_is_found_behind_the_kill_switch_of_a_start_before", traffic::kill_switch_and_a_name),
        ("a_server_with_a_name_is_found_over_the_uplink_that_answers", traffic::name_over_the_other_uplink),
        ("a_server_with_a_name_is_found_although_one_resolver_lies", traffic::name_that_one_resolver_lies_of),
        ("a_connection_that_ran_before_goes_on", traffic::connection_before),
        ("a_download_survives_a_silent_uplink_and_a_new_address", traffic::uplinks_change),
        ("who_is_behind_a_gateway_is_carried_too", traffic::gateway),
        ("without_a_server_everything_goes_straight_to_its_target", straight::everything),
        ("it_runs_as_any_user_with_no_capability_but_one_and_says_when_it_is_ready", straight::as_its_unit_runs_it),
        ("without_a_server_the_uplink_that_answers_is_used_whichever_is_silent", straight::silent_uplinks),
        ("without_a_server_a_loss_of_carrier_and_a_new_address_are_followed", straight::carrier_and_address),
        ("without_a_server_ipv6_goes_over_the_uplink_that_answers", straight::over_ipv6),
        ("with_a_server_an_uplink_that_leads_to_a_portal_is_not_used_until_that_is_gone", mishaps::portal),
        ("a_restart_of_the_server_leaves_a_backup_a_backup_and_a_quota_counted", mishaps::server_restarts),
        ("after_a_suspension_of_either_end_a_download_goes_on", mishaps::suspended),
        ("when_the_wall_clock_is_set_everything_goes_on_and_the_quota_is_remembered", mishaps::clock_is_set),
        ("thousands_of_flows_of_datagrams_are_all_answered_and_no_call_starves_beside_them", flows::thousands),
        ("an_uplink_that_leads_to_a_portal_is_not_used_until_that_is_gone", straight::portal),
        ("roles_of_uplinks_change_by_a_signal_and_connections_stay", straight::roles_change),
        ("what_a_dry_run_prints_is_what_is_done", traffic::dry_run),
    ];
    let trial = |(name, test): (&str, fn())| {
        let trial = Trial::test(format!("up::{name}"), move || {
            test();
            Ok(())
        });
        trial.with_ignored_flag(missing.is_some())
    };
    tests.into_iter().map(trial).collect()
}
