use super::super::index::PARTITIONS_PER_MISS;
use super::*;
use faro_pool::Pool;
use std::fs::File;

fn open(files: &OutputFiles) -> Result<Output, BlockStatus> {
    let id = OutputId {
        shuffle_id: 1,
        map_id: 2,
    };
    Output::open(&Stores::new(8, 64 << 20), id, files)
}

fn read(output: &Output, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let pool = Pool::new(faro_pool::MIN_LIMIT_BYTES).unwrap();
    output.read(
        &ChunkCache::new(pool, 1).unwrap(),
        offset,
        buffer,
        Sleep::May,
    )
}

fn locate(output: &Output, start: u32, end: u32) -> Result<FileRange, BlockStatus> {
    let located = output.locate(start, end, Sleep::May);
    located.map_err(|error| match error {
        LocateError::Status(status) => status,
        other => panic!("{other:?}"),
    })
}

fn write(dir: &std::path::Path, offsets: &[u64], data: Option<&[u8]>) -> OutputFiles {
    let files = OutputFiles {
        data: dir.join("d"),
        index: dir.join("i"),
    };
    let raw: Vec<u8> = offsets.iter().flat_map(|o| o.to_be_bytes()).collect();
    std::fs::write(&files.index, raw).unwrap();
    if let Some(data) = data {
        std::fs::write(&files.data, data).unwrap();
    }
    files
}

#[test]
fn locates_and_reads_partitions() {
    let dir = tempfile::tempdir().unwrap();
    let files = write(dir.path(), &[0, 3, 3, 10], Some(b"abcdefghij"));
    let output = open(&files).unwrap();
    assert_eq!(
        locate(&output, 0, 1),
        Ok(FileRange {
            offset: 0,
            length: 3
        })
    );
    assert_eq!(
        locate(&output, 1, 2),
        Ok(FileRange {
            offset: 3,
            length: 0
        })
    );
    assert_eq!(
        locate(&output, 0, 3),
        Ok(FileRange {
            offset: 0,
            length: 10
        })
    );
    let mut buffer = [0; 7];
    assert_eq!(read(&output, 3, &mut buffer).unwrap(), 7);
    assert_eq!(&buffer, b"defghij");
}

#[test]
fn refuses_what_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let files = write(dir.path(), &[0, 3, 10], Some(b"abcdefghij"));
    let output = open(&files).unwrap();
    for (start, end) in [
        (0, 0),
        (1, 1),
        (2, 1),
        (0, 3),
        (2, 3),
        (u32::MAX - 1, u32::MAX),
    ] {
        assert_eq!(
            locate(&output, start, end),
            Err(BlockStatus::BadRange),
            "{start}..{end}"
        );
    }
}

#[test]
fn refuses_indexes_that_lie() {
    let dir = tempfile::tempdir().unwrap();
    let files = write(dir.path(), &[0, 8, 3, 11], Some(b"abcdefghij"));
    let output = open(&files).unwrap();
    assert_eq!(
        locate(&output, 1, 2),
        Err(BlockStatus::BadIndex),
        "runs backwards"
    );
    assert_eq!(
        locate(&output, 2, 3),
        Err(BlockStatus::BadIndex),
        "beyond the file"
    );
    assert_eq!(
        locate(&output, 0, 1),
        Ok(FileRange {
            offset: 0,
            length: 8
        }),
        "others are served"
    );
    for bytes in [0, 7, 8, 15, 17] {
        std::fs::write(&files.index, vec![0; bytes]).unwrap();
        assert_eq!(
            open(&files).err(),
            Some(BlockStatus::BadIndex),
            "{bytes} bytes"
        );
    }
}

#[test]
fn absent_files() {
    let dir = tempfile::tempdir().unwrap();
    let files = write(dir.path(), &[0, 0, 0], None);
    let output = open(&files).unwrap();
    assert_eq!(
        locate(&output, 0, 2),
        Ok(FileRange {
            offset: 0,
            length: 0
        }),
        "empty map output"
    );
    let files = write(dir.path(), &[0, 5], None);
    let output = open(&files).unwrap();
    assert_eq!(
        locate(&output, 0, 1),
        Err(BlockStatus::UnknownOutput),
        "data file is gone"
    );
    std::fs::remove_file(&files.index).unwrap();
    assert_eq!(open(&files).err(), Some(BlockStatus::UnknownOutput));
}

/// Partitions of 1 byte each, of which the first 10 exist.
fn large(dir: &std::path::Path, partitions: u64) -> OutputFiles {
    let offsets: Vec<u64> = (0..=partitions).map(|p| p * 10 / partitions).collect();
    write(dir, &offsets, Some(b"abcdefghij"))
}

#[test]
fn of_large_indexes_two_offsets_are_read_until_they_are_asked_for_often() {
    let dir = tempfile::tempdir().unwrap();
    let files = large(dir.path(), 200_000);
    let stores = Stores::new(8, 64 << 20);
    let id = OutputId {
        shuffle_id: 1,
        map_id: 2,
    };
    let output = Output::open(&stores, id, &files).unwrap();
    assert_eq!(stores.offset_bytes(), 0);
    let first = FileRange {
        offset: 0,
        length: 1,
    };
    assert_eq!(locate(&output, 19_999, 20_000), Ok(first));
    let all = FileRange {
        offset: 0,
        length: 10,
    };
    assert_eq!(locate(&output, 0, 200_000), Ok(all));
    assert_eq!(
        locate(&output, 0, 200_001),
        Err(BlockStatus::BadRange),
        "there are 200,000"
    );
    assert_eq!(stores.offset_bytes(), 0);
    for _ in 0..200_000 / PARTITIONS_PER_MISS + 1 {
        assert_eq!(locate(&output, 19_999, 20_000), Ok(first));
    }
    let table = 200_001 * 4;
    assert!((table..table + 64).contains(&stores.offset_bytes()));
    let never = output.locate(19_999, 20_000, Sleep::Never);
    assert_eq!(never, Ok(first), "from memory");
    output.close();
    assert_eq!(stores.offset_bytes(), 0);
    let never = output.locate(19_999, 20_000, Sleep::Never);
    assert_eq!(never, Err(LocateError::Cold), "the index is not open");
    assert_eq!(locate(&output, 19_999, 20_000), Ok(first));
}

#[test]
fn a_small_index_is_read_once_and_again_when_it_was_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let files = large(dir.path(), 20);
    let output = open(&files).unwrap();
    let descriptors = &output.stores.descriptors;
    assert_eq!(descriptors.open_files(), 1, "the data");
    for _ in 0..2 {
        let range = locate(&output, 2, 4).unwrap();
        assert_eq!((range.offset, range.length), (1, 1));
        assert!(output.stores.offset_bytes() > 0);
        output.close();
        assert_eq!(descriptors.open_files(), 0);
    }
}

#[test]
fn other_files_under_the_same_paths_are_not_taken_for_these() {
    let dir = tempfile::tempdir().unwrap();
    let files = write(dir.path(), &[0, 10], Some(b"abcdefghij"));
    let replace = || {
        std::fs::write(dir.path().join("new"), b"ABCDEFGHIJ").unwrap();
        std::fs::rename(dir.path().join("new"), &files.data).unwrap();
    };
    let write_over = || std::fs::write(&files.data, b"ABCDEFGHIJK").unwrap();
    let delete = || std::fs::remove_file(&files.data).unwrap();
    for change in [&replace as &dyn Fn(), &write_over, &delete] {
        for is_open in [true, false] {
            std::fs::write(&files.data, b"abcdefghij").unwrap();
            let output = open(&files).unwrap();
            assert_eq!(read(&output, 0, &mut [0; 10]).unwrap(), 10);
            if !is_open {
                output.close();
            }
            change();
            assert!(!output.is_replaced(), "nothing was read since");
            assert!(read(&output, 0, &mut [0; 10]).is_err());
            assert!(output.is_replaced());
            assert_eq!(output.stores.descriptors.open_files(), 0);
        }
    }
    std::fs::write(&files.data, b"abcdefghij").unwrap();
    let output = open(&files).unwrap();
    assert!(output.check_paths());
    replace();
    assert!(!output.check_paths());
    assert!(output.is_replaced());
}

#[test]
fn files_that_do_not_fit_each_other_are_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let files = write(dir.path(), &[0, 10], Some(b"abc"));
    assert!(!open(&files).unwrap().is_whole());
    let late = dir.path().join("late");
    std::fs::write(&late, b"ABCDEFGHIJ").unwrap();
    let spark = std::thread::spawn({
        let data = files.data.clone();
        move || std::fs::rename(late, data).unwrap()
    });
    while !open(&files).unwrap().is_whole() {}
    spark.join().unwrap();
    let mut buffer = [0; 10];
    read(&open(&files).unwrap(), 0, &mut buffer).unwrap();
    assert_eq!(&buffer, b"ABCDEFGHIJ");
}

#[test]
fn a_file_that_shrinks_is_an_error_of_the_read() {
    let dir = tempfile::tempdir().unwrap();
    let files = write(dir.path(), &[0, 10], Some(b"abcdefghij"));
    let output = open(&files).unwrap();
    File::options()
        .write(true)
        .open(&files.data)
        .unwrap()
        .set_len(4)
        .unwrap();
    let error = read(&output, 0, &mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}
