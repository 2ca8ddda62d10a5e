//! Messages and records: what is written is read, and no bytes make the reader panic.

#![allow(clippy::unwrap_used)]

use faro_service::{
    ApplicationStatus, Figures, Hello, LoanState, Record, Refusal, Reply, Request, Status, Token,
    MAX_MESSAGE, VERSIONS,
};
use faro_wire::{OutputId, VersionRange};
use proptest::prelude::*;

fn requests() -> impl Strategy<Value = Request> {
    let name = "[a-z0-9_-]{1,40}";
    prop_oneof![
        (
            name,
            name,
            any::<bool>(),
            any::<[u8; 32]>(),
            prop::collection::vec(any::<u8>(), 0..64)
        )
            .prop_map(|(application, executor, sealed, token, secret)| {
                Request::Hello(
                    Hello {
                        application,
                        executor,
                        sealed,
                        token: Token::new(token),
                        secret: secret.into(),
                    },
                    VERSIONS,
                )
            }),
        (0..=i32::MAX as u32, 0..=i64::MAX, any::<bool>()).prop_map(
            |(shuffle_id, map_id, has_data)| Request::Output {
                id: OutputId { shuffle_id, map_id },
                has_data,
            }
        ),
        (
            0..=i32::MAX as u32,
            any::<bool>(),
            prop::collection::vec(0..=i64::MAX, 1..=126)
        )
            .prop_map(|(shuffle, files, maps)| Request::Lend {
                shuffle,
                files,
                maps
            }),
        (0..=i32::MAX as u32).prop_map(|shuffle| Request::Forget { shuffle }),
        Just(Request::End),
        any::<u16>().prop_map(|from| Request::Status { from }),
        Just(Request::Behind),
        (
            any::<u8>(),
            any::<u32>(),
            any::<u32>(),
            proptest::collection::vec(any::<u8>(), 0..4_097)
        )
            .prop_map(|(replicas, at, of, card)| Request::Host {
                replicas,
                at,
                of,
                card
            }),
    ]
}

fn figures() -> impl Strategy<Value = Figures> {
    let figure = ("[a-z_]{1,30}", any::<u64>()).prop_map(|(name, value)| (name.into(), value));
    prop::collection::vec(figure, 0..40)
}

fn applications() -> impl Strategy<Value = Vec<ApplicationStatus>> {
    let application = ("[a-z0-9-]{1,255}", any::<u32>(), "[a-z]{1,10}", figures());
    let application = application.prop_map(|(name, user, state, figures)| ApplicationStatus {
        name,
        user,
        state: state.into(),
        figures,
    });
    prop::collection::vec(application, 0..40)
}

proptest! {
    #[test]
    fn a_request_is_read_back(request in requests()) {
        let bytes = request.encode();
        let again = Request::decode(&bytes).unwrap();
        prop_assert_eq!(&*again.encode(), &*bytes);
        // Shorter or longer, it is none.
        for end in 0..bytes.len() {
            prop_assert!(Request::decode(&bytes[..end]).is_err());
        }
        let mut longer = bytes.to_vec();
        longer.push(0);
        prop_assert!(Request::decode(&longer).is_err());
    }

    #[test]
    fn an_answer_is_read_back(card in prop::collection::vec(any::<u8>(), 0..4096), text in ".{0,400}") {
        for reply in [
            Reply::Welcome { version: VERSIONS.newest, card: card.clone() },
            Reply::Done,
            Reply::Lent(vec![LoanState::NotHere, LoanState::Empty, LoanState::Whole]),
            Reply::Lent(vec![LoanState::Whole; 1_000]),
            Reply::Behind(card.len() as u64),
            Reply::Refused { why: Refusal::Quota, text: text.clone() },
        ] {
            prop_assert_eq!(Reply::decode(&reply.encode()).unwrap(), reply);
        }
    }

    #[test]
    fn a_status_is_read_back(version in "[a-z0-9.-]{1,40}", figures in figures(), applications in applications()) {
        let protocols = VersionRange::new(4, 5);
        let status = Status { version, protocols, figures, applications };
        let mut all = Vec::new();
        loop {
            let bytes = status.encode(all.len() as u16);
            prop_assert!(bytes.len() <= MAX_MESSAGE);
            let (part, left) = Status::decode(&bytes).unwrap();
            prop_assert_eq!(&part.figures, &status.figures);
            prop_assert!(left == 0 || !part.applications.is_empty());
            all.extend(part.applications);
            prop_assert_eq!(all.len() + usize::from(left), status.applications.len());
            if left == 0 {
                break;
            }
        }
        prop_assert_eq!(&all, &status.applications);
        let bytes = status.encode(0);
        // Each end takes a decoding of all before it: every one below 4 Ki, and up to 4 Ki of a longer message.
        for end in (0..bytes.len()).step_by(1 + bytes.len() / 4_096) {
            prop_assert!(Status::decode(&bytes[..end]).is_err());
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = Request::decode(&bytes);
        let _ = Reply::decode(&bytes);
        let _ = Status::decode(&bytes);
        let _ = Record::decode(&bytes);
    }

    #[test]
    fn no_message_asks_for_too_many(files in any::<bool>(), more in 0usize..100) {
        for count in [0, if files { 127 } else { 1_001 } + more] {
            let request = Request::Lend { shuffle: 1, files, maps: vec![7; count] };
            prop_assert!(Request::decode(&request.encode()).is_err());
        }
    }

    #[test]
    fn ids_that_spark_does_not_have_are_refused(shuffle in 1u32 << 31.., map in i64::MIN..0) {
        for id in [OutputId { shuffle_id: shuffle, map_id: 0 }, OutputId { shuffle_id: 0, map_id: map }] {
            let bytes = Request::Output { id, has_data: true }.encode();
            prop_assert!(Request::decode(&bytes).is_err());
        }
    }
}
