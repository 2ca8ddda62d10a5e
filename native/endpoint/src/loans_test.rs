use super::*;
use std::path::Path;

fn id(shuffle_id: u32, map_id: i64) -> OutputId {
    OutputId { shuffle_id, map_id }
}

fn files(dir: &Path, offsets: &[u64], data: &[u8]) -> (File, Option<File>) {
    let (index_path, data_path) = (dir.join("i"), dir.join("d"));
    let offsets: Vec<u8> = offsets.iter().flat_map(|o| o.to_be_bytes()).collect();
    std::fs::write(&index_path, offsets).unwrap();
    std::fs::write(&data_path, data).unwrap();
    let [index, data] = [index_path, data_path].map(|path| File::open(path).unwrap());
    (index, Some(data))
}

#[test]
fn the_first_goes_when_there_are_too_many() {
    let dir = tempfile::tempdir().unwrap();
    let loans = LentOutputs::bounded(2);
    for map in [1, 2, 2, 2, 2, 2, 3] {
        let (index, data) = files(dir.path(), &[0, 3], b"abc");
        loans.keep(id(1, map), index, data).unwrap();
        assert!(lock(&loans.state).known.len() <= 2);
        assert!(lock(&loans.state).order.len() <= 4);
    }
    assert!(loans.find(id(1, 1)).is_none() && loans.find(id(1, 3)).is_some());
    let (index, data) = files(dir.path(), &[0, 3], b"abc");
    loans.keep(id(2, 3), index, data).unwrap();
    loans.forget(1);
    assert!(loans.find(id(1, 3)).is_none() && loans.find(id(2, 3)).is_some());
    loans.close();
    assert!(loans.find(id(2, 3)).is_none());
}

#[test]
fn no_offset_is_believed() {
    let dir = tempfile::tempdir().unwrap();
    let bad = [
        (vec![0, 4, 3], BlockStatus::BadIndex),
        (vec![0, 1, 4], BlockStatus::BadIndex),
        (vec![0, u64::MAX, u64::MAX], BlockStatus::BadIndex),
    ];
    for (offsets, wanted) in bad {
        let (index, data) = files(dir.path(), &offsets, b"abc");
        let loan = Loan::new(index, data).unwrap();
        assert_eq!(loan.locate(1, 2), Err(wanted), "{offsets:?}");
    }
    let (index, data) = files(dir.path(), &[0, 1, 3], b"abc");
    let loan = Loan::new(index, data).unwrap();
    assert_eq!(loan.locate(1, 3), Err(BlockStatus::BadRange));
    assert_eq!(loan.locate(1, 1), Err(BlockStatus::BadRange));
    let range = loan.locate(1, 2).unwrap();
    let mut bytes = [0; 2];
    loan.read(range.offset, &mut bytes).unwrap();
    assert_eq!(&bytes, b"bc");
    // The file becomes shorter afterwards.
    std::fs::write(dir.path().join("d"), b"a").unwrap();
    let error = loan.read(range.offset, &mut bytes).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    let (index, _) = files(dir.path(), &[0, 3], b"");
    let loan = Loan::new(index, None).unwrap();
    assert_eq!(loan.locate(0, 1), Err(BlockStatus::UnknownOutput));
}

#[test]
fn only_regular_files_that_cannot_be_written_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let (index, _) = files(dir.path(), &[0, 3], b"abc");
    let writable = File::options()
        .read(true)
        .write(true)
        .open(dir.path().join("d"))
        .unwrap();
    let others = [writable, File::open("/dev/zero").unwrap()];
    let others = others.into_iter().chain([File::open(dir.path()).unwrap()]);
    for data in others {
        let index = index.try_clone().unwrap();
        let error = Loan::new(index, Some(data)).err().unwrap();
        assert!(
            matches!(error, LoanError::NotReadOnly { part: "data file" }),
            "{error}"
        );
    }
    for bytes in [0, 8, 17] {
        std::fs::write(dir.path().join("i"), vec![0; bytes]).unwrap();
        let index = File::open(dir.path().join("i")).unwrap();
        let error = Loan::new(index, None).err().unwrap();
        assert!(matches!(error, LoanError::IndexLength { .. }), "{error}");
    }
}
