//! The contract of [`Fabric`](faro_fabric::Fabric), as checks that every fabric passes.
//!
//! A check is a function of a [`Bench`], which makes the fabrics; [`fabric_conformance`] makes a
//! test of each check. One thread drives all fabrics of a check step by step ([`Rig`]), so that the
//! check decides the order of calls. Nothing sleeps; each wait ends by an event, or by a deadline
//! that only a hang reaches.
//!
//! Where the contract leaves a choice to the fabric, its bench states the choice, and the checks
//! test for it.
//!
//! Idea: one suite per trait, run against each implementation, as iceoryx2 does. A crate of its own,
//! so that no test code is part of a production crate.

pub mod bounds;
pub mod close_reasons;
pub mod connections;
pub mod messages;
pub mod oracle;
mod patterns;
pub mod reads;
pub mod refused_writes;
mod rig;
mod test_connector;
mod tier;
pub mod writes;

pub use patterns::{assert_filled, fill, Xorshift};
pub use rig::{ConnectedPair, Rig, Site};
pub use test_connector::{TestConnector, WELCOME_FRAME_BYTES};
pub use tier::cases;

/// Makes fabrics of one kind.
pub trait Bench {
    /// Returns a fabric of a new endpoint; all fabrics of one bench can reach each other.
    fn site(&self) -> Site;
    /// Returns a location of the right form with no endpoint at it.
    fn nowhere(&self) -> String;
    /// Returns whether a refused write is always reported as `Refused`; otherwise it may be
    /// reported as `Done`.
    fn learns_refusals(&self) -> bool;
}

/// Makes a module of tests: `fabric_conformance!(tcp, Tcp::on("127.0.0.1"));`. Attributes before
/// the name go to every test (`#[ignore = "..."]`).
#[macro_export]
macro_rules! fabric_conformance {
    ($(#[$attribute:meta])* $module:ident, $bench:expr) => {
        $crate::fabric_conformance!(@module [$(#[$attribute])*] $module, $bench,
            connections {
                connects_and_names_both_ends
                refuses_to_be_mistaken_for_another
                no_endpoint_there_ends_in_unreachable
                a_silent_place_ends_at_the_deadline
                nonsense_is_no_location
                both_connect_at_once
                peers_are_never_reused
                what_is_not_connected_is_handed_back
                an_idle_poll_returns_and_a_waker_wakes_it
            }
            messages {
                arrive_in_order_and_whole
                of_every_size
                too_large_is_handed_back
                flow_both_ways_at_once
            }
            writes {
                come_from_many_parts
                land_where_they_should
                with_and_without_immediate
                precede_the_message_after_them
                scattered_by_the_hundred
                of_nothing
                beyond_their_source_are_handed_back
                the_last_lets_go
                use_slabs_beyond_the_first
            }
            refused_writes {
                out_of_bounds_touch_nothing
                under_an_unknown_key_touch_nothing
                under_anothers_key_touch_nothing
                to_what_may_only_be_read_touch_nothing
                after_revocation_touch_nothing
                revoked_in_mid_transfer_stop
            }
            reads {
                bring_the_bytes
                out_of_bounds_are_refused
                under_an_unknown_key_are_refused
                under_anothers_key_are_refused
                of_what_may_only_be_written_are_refused
                after_revocation_are_refused
                larger_than_their_target_are_handed_back
                use_slabs_beyond_the_first
            }
            bounds {
                a_full_queue_hands_back_and_recovers
                room_ends_the_next_poll
                a_full_queue_of_bytes_hands_back_and_recovers
                one_full_peer_stops_no_other
            }
            close_reasons {
                disconnect_flushes_and_closes_last
                the_peer_learns_why
                a_killed_peer_flushes_everything
                a_peer_killed_in_mid_write_harms_nothing
                exposures_outlive_their_peer
                counters_add_up
            }
            oracle {
                agrees_in_any_order
            }
        );
    };
    (@module $attributes:tt $module:ident, $bench:expr, $($group:ident { $($check:ident)* })*) => {
        mod $module {
            $(
                mod $group {
                    use super::super::*;
                    $(
                        $crate::fabric_conformance!(@test $attributes $group $check $bench);
                    )*
                }
            )*
        }
    };
    (@test [$(#[$attribute:meta])*] $group:ident $check:ident $bench:expr) => {
        #[test]
        $(#[$attribute])*
        fn $check() {
            $crate::$group::$check(&$bench);
        }
    };
}
