//! The bytes on the wire are those in `tests/golden`, which Java reads as well (`record_*.hex`, what
//! crosses JNI, is tested in `native/jni`).
//! `FARO_BLESS=1` rewrites the files' bytes (see the README there); a change of these is a change
//! of protocol.

mod support;

use faro_wire::header::HEADER_BYTES;
use faro_wire::message::{
    Abort, ClearToSend, CommandReply, DataReady, DataWritten, Failed, Fetch, FetchResponse, Join,
    MemberCommand, MoreBuffers, ReadOffer,
};
use faro_wire::{BootstrapId, Card, FrameHeader};
use std::path::PathBuf;
use std::sync::Once;
use support::samples;

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

fn path(name: &str) -> PathBuf {
    golden().join(format!("{name}.hex"))
}

/// Returns the bytes of a file of hex digits, white space, and comments from `#` to the end of a
/// line.
fn read(name: &str) -> Vec<u8> {
    let path = files().join(format!("{name}.hex"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    text.lines()
        .flat_map(|line| line.split('#').next().unwrap_or("").split_whitespace())
        .map(|byte| {
            u8::from_str_radix(byte, 16).unwrap_or_else(|e| panic!("{path:?}: {byte}: {e}"))
        })
        .collect()
}

/// Keeps the comment at the top, replaces the rest.
fn bless(name: &str, bytes: &[u8]) {
    let path = path(name);
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let mut text: String = old
        .lines()
        .take_while(|line| line.starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect();
    for row in bytes.chunks(16) {
        let row: Vec<_> = row.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push_str(&row.join(" "));
        text.push('\n');
    }
    std::fs::write(&path, text).unwrap_or_else(|e| panic!("{path:?}: {e}"));
}

/// Returns the directory of the files; `FARO_BLESS=1` rewrites them first.
fn files() -> PathBuf {
    static BLESSED: Once = Once::new();
    BLESSED.call_once(|| {
        if std::env::var_os("FARO_BLESS").is_some_and(|value| value == "1") {
            for (name, bytes) in samples::all() {
                bless(name, &bytes);
            }
        }
    });
    golden()
}

#[test]
fn every_layout_is_what_the_files_say() {
    for (name, bytes) in samples::all() {
        assert_eq!(read(name), bytes, "{name}.hex");
    }
}

#[test]
fn no_file_is_without_a_layout_and_none_without_its_explanation() {
    let known: Vec<_> = samples::all().into_iter().map(|(name, _)| name).collect();
    for entry in std::fs::read_dir(files()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "hex") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(
                known.contains(&name) || name.starts_with("record_"),
                "{name}.hex belongs to no layout"
            );
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(
                text.starts_with("# "),
                "{name}.hex has no comment at its top"
            );
        }
    }
}

#[test]
fn the_files_decode_to_the_samples() {
    assert_eq!(Card::decode(&read("card")), Ok(samples::card()));
    assert_eq!(Fetch::decode(&read("message_fetch")), Ok(samples::fetch()));
    assert_eq!(
        FetchResponse::decode(&read("message_fetch_response")),
        Ok(samples::fetch_response())
    );
    assert_eq!(
        MoreBuffers::decode(&read("message_more_buffers")),
        Ok(samples::more_buffers())
    );
    assert_eq!(
        ReadOffer::decode(&read("message_read_offer")),
        Ok(samples::read_offer())
    );
    assert_eq!(
        DataWritten::decode(&read("message_data_written")),
        Ok(samples::data_written())
    );
    assert_eq!(
        Failed::decode(&read("message_failed")),
        Ok(samples::failed())
    );
    assert_eq!(Join::decode(&read("message_join")), Ok(samples::join()));
    assert_eq!(
        ClearToSend::decode(&read("message_clear_to_send")),
        Ok(samples::clear_to_send())
    );
    assert_eq!(
        DataReady::decode(&read("message_data_ready")),
        Ok(samples::data_ready())
    );
    assert_eq!(Abort::decode(&read("message_abort")), Ok(samples::abort()));
    assert_eq!(
        MemberCommand::decode(&read("message_command")),
        Ok(samples::command())
    );
    for (name, command) in [
        ("message_command_page", samples::command_page()),
        ("message_command_indexes", samples::command_indexes()),
    ] {
        assert_eq!(MemberCommand::decode(&read(name)), Ok(command));
    }
    for (name, answer) in [
        ("message_command_answer", samples::command_answer()),
        ("message_command_content", samples::command_content()),
    ] {
        assert_eq!(CommandReply::decode(&read(name)), Ok(answer));
    }
    assert_eq!(
        BootstrapId::decode(&read("bootstrap_id")),
        Ok(samples::bootstrap_id())
    );

    let bytes = read("frame_header");
    assert_eq!(bytes.len(), HEADER_BYTES);
    let header = FrameHeader::parse(&bytes).unwrap();
    assert_eq!(header, samples::header());
    let body = read("message_fetch");
    assert_eq!(header.length.get() as usize, body.len());
    header.check_body(&body).unwrap();
}
