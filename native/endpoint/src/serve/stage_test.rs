use super::*;

const ALL: [&str; 6] = [
    "idle", "queued", "starved", "running", "draining", "offered",
];

fn stage(name: &str) -> Stage<u8> {
    match name {
        "idle" => Stage::Idle(7),
        "queued" => Stage::Queued(7),
        "starved" => Stage::Starved(7),
        "running" => Stage::running(),
        "draining" => Stage::Draining,
        _ => Stage::Offered,
    }
}

fn name(stage: &Stage<u8>) -> &'static str {
    match stage {
        Stage::Idle(_) => "idle",
        Stage::Queued(_) => "queued",
        Stage::Starved(_) => "starved",
        Stage::Running { .. } => "running",
        Stage::Draining => "draining",
        Stage::Offered => "offered",
    }
}

/// Applies an event to every state; the states after it, in the order of `ALL`.
fn after(event: impl Fn(&mut Stage<u8>)) -> [&'static str; 6] {
    ALL.map(|from| {
        let mut stage = stage(from);
        event(&mut stage);
        name(&stage)
    })
}

fn buffer() -> RemoteBuffer {
    RemoteBuffer {
        key: 1.into(),
        offset: 0.into(),
        length: 1.into(),
        reserved: 0.into(),
    }
}

#[test]
fn every_state_and_every_event() {
    let table = [
        (
            "queue",
            after(|s| {
                s.queue(|_| true);
            }),
        ),
        (
            "queue, nothing to do",
            after(|s| {
                s.queue(|_| false);
            }),
        ),
        (
            "permit",
            after(|s| {
                s.on_permit(|_| false);
            }),
        ),
        (
            "permit, wants memory",
            after(|s| {
                s.on_permit(|_| true);
            }),
        ),
        ("turn", after(|s| drop(s.on_turn(8, false)))),
        ("turn, starved", after(|s| drop(s.on_turn(8, true)))),
        ("last turn", after(Stage::on_last_turn)),
        ("offer", after(Stage::on_offer)),
        (
            "memory",
            after(|s| {
                let _ = s.on_memory(|_| Ok::<_, ()>(()));
            }),
        ),
        (
            "no memory",
            after(|s| {
                let _ = s.on_memory(|_| Err(()));
            }),
        ),
        ("buffers", after(|s| drop(s.on_buffers(vec![buffer()])))),
        ("stop", after(|s| drop(s.on_stop()))),
    ];
    let expected = [
        [
            "queued", "queued", "starved", "running", "draining", "offered",
        ],
        [
            "idle", "queued", "starved", "running", "draining", "offered",
        ],
        [
            "idle", "running", "starved", "running", "draining", "offered",
        ],
        [
            "idle", "starved", "starved", "running", "draining", "offered",
        ],
        ["idle", "queued", "starved", "idle", "draining", "offered"],
        [
            "idle", "queued", "starved", "starved", "draining", "offered",
        ],
        [
            "idle", "queued", "starved", "draining", "draining", "offered",
        ],
        [
            "idle", "queued", "starved", "offered", "draining", "offered",
        ],
        [
            "idle", "queued", "running", "running", "draining", "offered",
        ],
        ALL,
        ALL,
        ["draining"; 6],
    ];
    for ((event, got), expected) in table.into_iter().zip(expected) {
        assert_eq!(got, expected, "{event}");
    }
}

#[test]
fn what_the_transitions_return() {
    for from in ALL {
        let queued = stage(from).queue(|job| *job == 7);
        assert_eq!(queued, from == "idle", "{from}");
        let begins = match from {
            "queued" => PermittedStep::Begins(7),
            _ => PermittedStep::Nothing,
        };
        assert_eq!(stage(from).on_permit(|job| *job != 7), begins);
        let kept = stage(from).on_turn(8, false);
        assert_eq!(kept.is_some(), from == "running", "{from}");
        let begun = stage(from).on_memory(|job| {
            *job = 8;
            Ok::<_, ()>(())
        });
        assert_eq!(begun, Ok((from == "starved").then_some(8)), "{from}");
    }
}

#[test]
fn buffers_reach_the_job_wherever_it_is() {
    for from in ["idle", "queued", "starved"] {
        let mut stage = stage(from);
        let taken = Buffers::Job(&mut 7, vec![buffer()]);
        assert_eq!(stage.on_buffers(vec![buffer()]), taken);
    }
    let mut stage = stage("running");
    assert_eq!(stage.on_buffers(vec![buffer()]), Buffers::Kept(1));
    assert_eq!(stage.on_buffers(vec![buffer()]), Buffers::Kept(2));
    assert_eq!(stage.on_turn(8, false), Some(vec![buffer(), buffer()]));
    let taken = Buffers::Job(&mut 8, Vec::new());
    assert_eq!(stage.on_buffers(Vec::new()), taken);
    for mut over in [Stage::<u8>::Draining, Stage::Offered] {
        assert_eq!(over.on_buffers(vec![buffer()]), Buffers::NotNeeded);
    }
}
