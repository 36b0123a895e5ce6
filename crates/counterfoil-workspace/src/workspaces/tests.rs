use super::*;

#[test]
fn names_can_be_read_and_never_meet() {
    let workspaces = Workspaces::new(Path::new("/s"), Path::new("/r"));
    let name = |run: &str, id: &str| workspaces.path(run, id).to_string_lossy().into_owned();
    assert!(name("01J", "fix/2/api server").starts_with("/s/worktrees/01J/fix-2-api-server_"));
    let cases = [
        ("r", "a/b"),
        ("r", "a-b"),
        ("r", "a b"),
        ("r", ""),
        ("r", ".."),
        ("..", "a"),
        ("", "a"),
        ("r/a", "b"),
        ("ra", "b"),
        ("r", "é"),
        ("r", "è"),
    ];
    let names: BTreeSet<_> = cases.iter().map(|(run, id)| name(run, id)).collect();
    assert_eq!(names.len(), cases.len());
    for name in names {
        let parts: Vec<_> = Path::new(&name).components().skip(1).collect();
        assert_eq!(parts.len(), 4, "{name}");
        assert!(parts.iter().all(|part| matches!(part, Component::Normal(_))), "{name}");
    }
    assert!(name("r", &"long ".repeat(100)).len() < 100);
}

#[test]
fn paths_are_named_from_the_folder() {
    let cases = [
        ("", "a/b", "a/b"),
        ("a", "a/b", "b"),
        ("a", "b", "../b"),
        ("a/b", "a/c/d", "../c/d"),
        ("a", "ab", "../ab"),
    ];
    for (prefix, path, display_path) in cases {
        assert_eq!(relative_to(Path::new(prefix), Path::new(path)), display_path);
    }
}
