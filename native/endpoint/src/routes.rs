//! The ways to one peer: one per fabric that both sides have, best first.
//!
//! A route that failed rests for a while (doubling up to a minute), so that requests do not queue
//! behind connects that time out; when all rest, a request fails at once and its caller takes the
//! slower path. When its time is over the route is simply tried again.
//!
//! What people must know is that a pair is slower than it could be: one warning, when blocks really
//! come by a lesser route (a peer that has ended is no reason to look at a cable), and not again
//! before the better one has worked in between. All that changes is a line at `info`.
//!
//! Pure: the time comes in, lines for the log go out.

use crate::config::fabric_name;
use crate::config::limits::{BACKOFF_MAX, BACKOFF_MIN};
use faro_fabric::{EndpointId, FabricKind};
use log::Level;
use std::time::{Duration, Instant};

/// A way to one peer.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) fabric: FabricKind,
    pub(crate) location: String,
    pub(crate) endpoint: EndpointId,
    /// Set by a failure; stays set, when its time is over, until the route has worked.
    rests_until: Option<Instant>,
    next_rest: Duration,
    /// What the last failure was.
    trouble: String,
    /// The warning was given.
    told: bool,
    /// This endpoint's fabric has failed for good.
    gone: bool,
}

impl Route {
    pub(crate) fn new(fabric: FabricKind, location: String, endpoint: EndpointId) -> Self {
        Self {
            fabric,
            location,
            endpoint,
            rests_until: None,
            next_rest: BACKOFF_MIN,
            trouble: String::new(),
            told: false,
            gone: false,
        }
    }

    /// True: it had failed.
    fn recovered(&mut self) -> bool {
        self.next_rest = BACKOFF_MIN;
        self.told = false;
        self.rests_until.take().is_some()
    }
}

/// A line for the log.
pub(crate) type Line = (Level, String);

/// See the module's comment.
pub(crate) struct Routes {
    /// The peer's, for people.
    name: String,
    routes: Vec<Route>,
}

impl Routes {
    /// `routes`: best first.
    pub(crate) fn new(name: String, routes: Vec<Route>) -> Self {
        Self { name, routes }
    }

    /// The best one that does not rest.
    ///
    /// # Errors
    /// There is none: why.
    pub(crate) fn choose(&self, now: Instant) -> Result<&Route, String> {
        let free =
            |route: &&Route| !route.gone && route.rests_until.is_none_or(|until| until <= now);
        if let Some(route) = self.routes.iter().find(free) {
            return Ok(route);
        }
        if self.routes.is_empty() {
            return Err(format!("no fabric in common with {}", self.name));
        }
        let troubles: Vec<String> = self
            .routes
            .iter()
            .map(|route| format!("{}: {}", fabric_name(route.fabric), route.trouble))
            .collect();
        let (name, troubles) = (&self.name, troubles.join("; "));
        Err(format!("{name} cannot be reached: {troubles}"))
    }

    /// It failed, and rests. `None`: there is no such route.
    pub(crate) fn failed(
        &mut self,
        fabric: FabricKind,
        trouble: &str,
        now: Instant,
    ) -> Option<Line> {
        let route = self.routes.iter_mut().find(|r| r.fabric == fabric)?;
        let rest = route.next_rest;
        route.rests_until = Some(now + rest);
        route.next_rest = (rest * 2).min(BACKOFF_MAX);
        trouble.clone_into(&mut route.trouble);
        let (name, fabric, rest) = (&self.name, fabric_name(fabric), rest.as_secs());
        Some((
            Level::Info,
            format!("{name}: {fabric} failed and rests for {rest} s: {trouble}"),
        ))
    }

    /// It is never to be taken again.
    pub(crate) fn lost(&mut self, fabric: FabricKind, trouble: &str) {
        if let Some(route) = self.routes.iter_mut().find(|r| r.fabric == fabric) {
            route.gone = true;
            trouble.clone_into(&mut route.trouble);
        }
    }

    /// There is a new connection by it.
    pub(crate) fn connected(&mut self, fabric: FabricKind) -> Option<Line> {
        let route = self.routes.iter_mut().find(|r| r.fabric == fabric)?;
        route.recovered().then(|| back(&self.name, fabric))
    }

    /// Blocks came by it.
    pub(crate) fn carried(&mut self, fabric: FabricKind, now: Instant) -> Option<Line> {
        let at = self.routes.iter().position(|r| r.fabric == fabric)?;
        let (better, rest) = self.routes.split_at_mut(at);
        // What came while it rests was on its way before it failed, and proves nothing.
        let tried_again = |route: &&mut Route| route.rests_until.is_some_and(|until| until <= now);
        if let Some(route) = rest.first_mut().filter(tried_again) {
            route.recovered();
            return Some(back(&self.name, fabric));
        }
        let failed = |route: &&mut Route| route.rests_until.is_some() && !route.told;
        let route = better.iter_mut().find(failed)?;
        route.told = true;
        let line = format!(
            "{}: blocks come over {} because {} failed ({}); it is tried again, at first after {} s, \
             later every {} s; {}",
            self.name,
            fabric_name(fabric),
            fabric_name(route.fabric),
            route.trouble,
            BACKOFF_MIN.as_secs(),
            BACKOFF_MAX.as_secs(),
            remedy(route.fabric)
        );
        Some((Level::Warn, line))
    }
}

fn back(name: &str, fabric: FabricKind) -> Line {
    let fabric = fabric_name(fabric);
    (Level::Info, format!("{name}: {fabric} works again"))
}

fn remedy(fabric: FabricKind) -> &'static str {
    match fabric {
        FabricKind::Verbs => {
            "look at the link and its counters on both hosts (`rdma link`, `rdma statistic`), or \
             set spark.faro.fabric=tcp to do without"
        }
        FabricKind::Shm => "both processes have to run as the same user",
        FabricKind::Tcp => "look at the network between the hosts",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(fabrics: &[FabricKind]) -> Routes {
        let route = |fabric: &FabricKind| Route::new(*fabric, "there".to_owned(), 7);
        Routes::new("executor-3".to_owned(), fabrics.iter().map(route).collect())
    }

    fn chosen(routes: &Routes, now: Instant) -> FabricKind {
        routes.choose(now).map(|route| route.fabric).unwrap()
    }

    const PAIR: [FabricKind; 2] = [FabricKind::Verbs, FabricKind::Tcp];

    #[test]
    fn a_failed_route_rests_longer_each_time_and_is_tried_again() {
        let (mut routes, mut now) = (routes(&PAIR), Instant::now());
        for rest in [2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(chosen(&routes, now), FabricKind::Verbs);
            let (level, line) = routes.failed(FabricKind::Verbs, "cable cut", now).unwrap();
            assert_eq!(level, Level::Info);
            assert_eq!(
                line,
                format!("executor-3: verbs failed and rests for {rest} s: cable cut")
            );
            now += Duration::from_secs(rest);
            let before = now - Duration::from_millis(1);
            assert_eq!(chosen(&routes, before), FabricKind::Tcp);
        }
        let (_, line) = routes.connected(FabricKind::Verbs).unwrap();
        assert_eq!(line, "executor-3: verbs works again");
        let (_, line) = routes.failed(FabricKind::Verbs, "cable cut", now).unwrap();
        assert!(line.contains("rests for 2 s"), "from the beginning: {line}");
    }

    #[test]
    fn one_warning_when_blocks_come_by_a_lesser_route() {
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
        routes.failed(FabricKind::Verbs, "nobody there", now);
        routes.failed(FabricKind::Tcp, "refused", now);
        let why = routes.choose(now).err().unwrap();
        assert_eq!(
            why,
            "executor-3 cannot be reached: verbs: nobody there; tcp: refused"
        );
    }

    #[test]
    fn a_lost_fabric_is_never_tried_again() {
        let (mut routes, now) = (routes(&PAIR), Instant::now());
        routes.lost(FabricKind::Verbs, "device gone");
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
}
