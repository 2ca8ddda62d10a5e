//! The checks that docs/design/row-block-format.md numbers are each cited once, from the line that makes
//! them.

use std::path::Path;
use std::{fs, io};

fn read_all(folder: &Path, code: &mut String) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_all(&path, code)?;
        } else {
            code.push_str(&fs::read_to_string(path)?);
        }
    }
    Ok(())
}

#[test]
fn each_check_of_the_format_is_cited_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("../../docs/design/row-block-format.md")).unwrap();
    let (_, checks) = text.split_once("## What a decoder checks").unwrap();
    let (checks, _) = checks.split_once("\n## ").unwrap();
    let is_check = |line: &&str| {
        line.split_once(". ")
            .is_some_and(|(n, _)| n.parse::<u32>().is_ok())
    };
    let numbers = 1..=checks.lines().filter(is_check).count();
    assert_eq!(*numbers.end(), 9, "the numbered checks were not found");
    let mut code = String::new();
    read_all(&root.join("src"), &mut code).unwrap();
    let cited = |number: &usize| {
        let citation = format!("docs/design/row-block-format.md, check {number}");
        code.matches(&citation).count()
    };
    let wrong: Vec<_> = numbers
        .map(|n| (n, cited(&n)))
        .filter(|(_, times)| *times != 1)
        .collect();
    assert!(wrong.is_empty(), "(check, citations): {wrong:?}");
}
