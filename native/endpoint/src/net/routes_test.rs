use super::*;

fn routes(fabrics: &[FabricKind]) -> Routes {
    let route = |fabric: &FabricKind| Route {
        fabric: *fabric,
        location: "there".to_owned(),
        peer: Arc::new(Identity::public(7)),
    };
    let routes = fabrics.iter().map(|fabric| (route(fabric), Vec::new()));
    Routes::new("executor-3".to_owned(), routes.collect())
}

fn line_of(failure: Option<RouteFailure>) -> LogEntry {
    match failure {
        Some(RouteFailure::BackOff(line)) => line,
        other => panic!("{other:?} instead of a back-off"),
    }
}

fn chosen(routes: &Routes, now: Instant) -> FabricKind {
    routes.choose(now).map(|route| route.fabric).unwrap()
}

const PAIR: [FabricKind; 2] = [FabricKind::Verbs, FabricKind::Tcp];

#[test]
fn back_off_doubles_and_ends_when_blocks_arrive() {
    let (mut routes, mut now) = (routes(&PAIR), Instant::now());
    for pause in [2, 4, 8, 16, 32, 60, 60] {
        assert_eq!(chosen(&routes, now), FabricKind::Verbs);
        let (level, line) = line_of(routes.failed(FabricKind::Verbs, "cable cut", now));
        assert_eq!(level, Level::Info);
        assert_eq!(
            line,
            format!("executor-3: verbs failed and is not tried for {pause} s: cable cut")
        );
        now += Duration::from_secs(pause);
        let before = now - Duration::from_millis(1);
        assert_eq!(chosen(&routes, before), FabricKind::Tcp);
    }
    let (_, line) = routes.carried(FabricKind::Verbs, now).unwrap();
    assert_eq!(line, "executor-3: verbs works again");
    let (_, line) = line_of(routes.failed(FabricKind::Verbs, "cable cut", now));
    assert!(
        line.contains("not tried for 2 s"),
        "from the beginning: {line}"
    );
}

#[test]
fn the_last_route_has_longer_to_connect() {
    let pair = routes(&PAIR);
    assert_eq!(pair.connect_timeout(FabricKind::Verbs), CONNECT_TIMEOUT);
    assert_eq!(pair.connect_timeout(FabricKind::Tcp), LAST_CONNECT_TIMEOUT);
    for only in [FabricKind::Verbs, FabricKind::Shm, FabricKind::Tcp] {
        assert_eq!(routes(&[only]).connect_timeout(only), LAST_CONNECT_TIMEOUT);
    }
}

#[test]
fn one_warning_when_blocks_arrive_by_a_lesser_route() {
    let (mut routes, start) = (routes(&PAIR), Instant::now());
    assert!(routes.carried(FabricKind::Verbs, start).is_none());
    routes.failed(FabricKind::Verbs, "cable cut", start);
    let (level, line) = routes.carried(FabricKind::Tcp, start).unwrap();
    assert_eq!(level, Level::Warn);
    for part in [
        "executor-3",
        "over tcp",
        "verbs failed (cable cut)",
        "rdma link",
    ] {
        assert!(line.contains(part), "{line}");
    }
    assert!(routes.carried(FabricKind::Tcp, start).is_none(), "once");
    let later = start + Duration::from_secs(2);
    routes.failed(FabricKind::Verbs, "still cut", later);
    assert!(routes.carried(FabricKind::Tcp, later).is_none(), "once");
    let mended = later + Duration::from_secs(4);
    assert!(
        routes.carried(FabricKind::Verbs, later).is_none(),
        "on its way before"
    );
    let (level, line) = routes.carried(FabricKind::Verbs, mended).unwrap();
    assert_eq!(
        (level, line.as_str()),
        (Level::Info, "executor-3: verbs works again")
    );
    assert!(routes.carried(FabricKind::Verbs, mended).is_none());
    routes.failed(FabricKind::Verbs, "cut again", mended);
    assert!(
        routes.carried(FabricKind::Tcp, mended).is_some(),
        "news again"
    );
}

#[test]
fn a_peer_that_is_gone_is_no_demotion() {
    let (mut routes, now) = (routes(&PAIR), Instant::now());
    routes.failed(FabricKind::Verbs, "no route", now);
    routes.failed(FabricKind::Tcp, "refused", now);
    let why = routes.choose(now).err().unwrap();
    assert_eq!(
        why,
        "executor-3 cannot be reached: verbs: no route; tcp: refused"
    );
}

#[test]
fn a_lost_fabric_is_never_tried_again() {
    let (mut routes, now) = (routes(&PAIR), Instant::now());
    routes.fabric_lost(FabricKind::Verbs, "device gone");
    assert_eq!(chosen(&routes, now + BACKOFF_MAX), FabricKind::Tcp);
    assert!(
        routes.carried(FabricKind::Tcp, now).is_none(),
        "said already"
    );
    routes.failed(FabricKind::Tcp, "refused", now);
    let why = routes.choose(now).err().unwrap();
    assert!(why.contains("verbs: device gone; tcp: refused"), "{why}");
}

#[test]
fn addresses_are_tried_in_their_order_before_the_route_fails() {
    let route = Route {
        fabric: FabricKind::Tcp,
        location: "a".to_owned(),
        peer: Arc::new(Identity::public(7)),
    };
    let others = vec!["b".to_owned(), "c".to_owned()];
    let mut routes = Routes::new("executor-3".to_owned(), vec![(route, others)]);
    let mut now = Instant::now();
    let at = |routes: &Routes, now| routes.choose(now).map(|route| route.location.clone());
    for (location, timeout) in [
        ("a", CONNECT_TIMEOUT),
        ("b", CONNECT_TIMEOUT),
        ("c", LAST_CONNECT_TIMEOUT),
    ] {
        assert_eq!(at(&routes, now).as_deref(), Ok(location));
        assert_eq!(routes.connect_timeout(FabricKind::Tcp), timeout);
        let failure = routes.failed(FabricKind::Tcp, &format!("no {location}"), now);
        assert_eq!(
            matches!(failure, Some(RouteFailure::Elsewhere(_))),
            location != "c"
        );
    }
    let why = "executor-3 cannot be reached: tcp: no a, then no b, then no c";
    assert_eq!(at(&routes, now), Err(why.to_owned()));
    now += BACKOFF_MIN;
    assert_eq!(at(&routes, now).as_deref(), Ok("a"), "from the beginning");
    routes.failed(FabricKind::Tcp, "no a", now);
    routes.carried(FabricKind::Tcp, now);
    assert_eq!(at(&routes, now).as_deref(), Ok("b"), "what works is kept");
    routes.failed(FabricKind::Tcp, "cut", now);
    routes.failed(FabricKind::Tcp, "no c", now);
    assert_eq!(at(&routes, now).as_deref(), Ok("a"), "all have their turn");
}

#[test]
fn nothing_in_common() {
    let (mut routes, now) = (routes(&[]), Instant::now());
    assert!(routes
        .choose(now)
        .err()
        .unwrap()
        .contains("no fabric in common"));
    assert!(routes.failed(FabricKind::Tcp, "x", now).is_none());
    assert!(routes.carried(FabricKind::Tcp, now).is_none());
}
