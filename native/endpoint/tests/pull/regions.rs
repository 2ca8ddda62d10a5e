//! Map outputs that are registered with the device as a whole, in the modes for comparison.

use crate::support::{block, collect, config, counter, fetch, pattern, until, Server, TIMEOUT};
use faro_endpoint::{Config, Endpoint, FabricChoice, RegionMode};

over_every_fabric!(
    a_map_output_that_is_registered_as_a_whole,
    many_map_outputs_that_are_registered_as_a_whole,
);

/// Over RDMA the output is read where it lies; otherwise it is written as usual.
fn a_map_output_that_is_registered_as_a_whole(fabric: FabricChoice) {
    for regions in [RegionMode::Pinned, RegionMode::Odp] {
        let server = Server::start(Config {
            regions,
            ..config("server", fabric)
        });
        let client = Endpoint::start(config("client", fabric)).unwrap();
        let peer = server.peer_of(&client);
        let parts = [pattern(1, 700_000), pattern(2, 3_000_000), pattern(3, 100)];
        let files = server.put(0, 1, &parts);
        let all = [block(0, 1, 0, 1), block(0, 1, 1, 2), block(0, 1, 2, 3)];
        assert_eq!(fetch(&client, peer, &all).bytes(), parts, "{regions:?}");
        // Beyond the arena's slabs.
        let registered = || {
            let of_slabs = counter(&server.endpoint, "pool.mappedBytes");
            counter(&server.endpoint, "pool.registeredBytes") > of_slabs
        };
        let pulled = counter(&client, "remoteReads") == 1;
        assert_eq!(pulled, registered(), "{regions:?}");
        match regions {
            RegionMode::Odp => assert!(!pulled || fabric == FabricChoice::Verbs),
            // Every device can; not every one has on-demand paging.
            _ => assert_eq!(pulled, fabric == FabricChoice::Verbs),
        }
        // Cut under its mapping: an error of the block or of the request, and no end of the process.
        let file = std::fs::File::options().write(true).open(&files.data);
        file.unwrap().set_len(1_000_000).unwrap();
        let cut = fetch(&client, peer, &[block(0, 1, 1, 2)]);
        let is_refused = cut.blocks.iter().any(|(status, _)| *status != 0);
        assert!(cut.failure.is_some() || is_refused, "{regions:?}");
        server.endpoint.forget_shuffle(0);
        until("the mapping goes", || !registered());
    }
}

/// Reads several map outputs, with as many requests at a time as a reduce task has. On-demand
/// registration is left out: rxe copies wrong bytes out of such a region (decision 009).
fn many_map_outputs_that_are_registered_as_a_whole(fabric: FabricChoice) {
    let server = Server::start(Config {
        regions: RegionMode::Pinned,
        ..config("server", fabric)
    });
    let client = Endpoint::start(config("client", fabric)).unwrap();
    let peer = server.peer_of(&client);
    let maps: Vec<Vec<Vec<u8>>> = (0..4)
        .map(|map| {
            (0..4)
                .map(|part| pattern(4 * map + part, 2_900_001))
                .collect()
        })
        .collect();
    for (map, parts) in (0..).zip(&maps) {
        server.put(0, map, parts);
    }
    for part in 0..4 {
        let requests: Vec<u64> = (0..4)
            .map(|map| {
                let wanted = [block(0, map, part, part + 1)];
                client.fetch(peer, &wanted, TIMEOUT).unwrap()
            })
            .collect();
        let mut fetched = collect(&client, &requests);
        for (map, request) in requests.iter().enumerate() {
            let fetched = fetched.remove(request).unwrap();
            let expected = &maps[map][part as usize];
            assert!(fetched.failure.is_none(), "{:?}", fetched.failure);
            assert!(fetched.bytes() == [expected.clone()], "{map}/{part}");
        }
    }
    assert_eq!(counter(&client, "crcErrors"), 0);
}
