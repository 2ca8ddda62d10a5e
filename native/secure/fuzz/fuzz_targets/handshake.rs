//! A peer that says anything: as a connector, as an acceptor, and in records. No message that the other side did not
//! make passes.

#![no_main]

use faro_secure::{Acceptor, Connector, Opener, Prologue, Protection, Psk, Secret};

const PROLOGUE: Prologue = Prologue {
    version: 2,
    fabric: b't',
    protection: Protection::Sealed,
    acceptor: 20,
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let psk = Psk::derive(&Secret::new([7; 32]), None, "fuzz");
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    match choice % 4 {
        0 => assert!(Acceptor::welcome(&psk, &PROLOGUE, bytes).is_err()),
        1 => {
            if let Ok((connector, _)) = Connector::hello(&psk, &PROLOGUE, 10) {
                assert!(connector.welcomed(bytes).is_err());
            }
        }
        2 => {
            let Ok((_, hello)) = Connector::hello(&psk, &PROLOGUE, 10) else {
                return;
            };
            if let Ok((acceptor, mut keys, _)) = Acceptor::welcome(&psk, &PROLOGUE, &hello) {
                assert!(acceptor.proven(bytes).is_err());
                assert!(keys.opener.open(&mut bytes.to_vec()).is_err());
            }
        }
        _ => {
            if let Some(header) = bytes.first_chunk() {
                if let Ok(length) = Opener::length(*header) {
                    assert!((21..=65_556).contains(&length));
                }
            }
        }
    }
});
