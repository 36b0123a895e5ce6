//! Files that vanish or change under a run: it goes on with what it began with.

use crate::house::{AGENT, House, asking_first, work};

/// A run that waits for an answer, with an agent that keeps what it was asked.
fn resting() -> House {
    let house = House::new();
    house.file("flow.yaml", asking_first());
    house.file("agent.sh", "cat > asked\necho '{\"ok\": true}'\n");
    assert_eq!(house.work("flow.yaml", AGENT).code, Some(4));
    house
}

#[test]
fn a_run_goes_on_when_its_files_are_gone() {
    let house = resting();
    for file in ["flow.yaml", "contracts/ok.yaml", "prompts/work.md"] {
        std::fs::remove_file(house.repo().join(file)).unwrap();
    }
    house.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    assert!(house.read("asked").starts_with("Do the work."));
    house.is_whole();
}

#[test]
fn a_run_keeps_the_words_and_the_contract_it_began_with() {
    let house = resting();
    house.file("flow.yaml", work("").replace("go: end", "go: nowhere"));
    house.file("prompts/work.md", "Do something else.\n");
    house.file("contracts/ok.yaml", "contract: acme/ok\nversion: 1\nfields: { other: string }\n");
    house.run(&["answer", "last", "approve", "yes", "--resume"]).expect(0, &["done"]);
    assert!(house.read("asked").starts_with("Do the work."));
    house.is_whole();
}

#[test]
fn a_prompt_that_is_missing_is_found_before_anything_runs() {
    let house = House::new();
    house.file("flow.yaml", work("").replace("prompts/work.md", "prompts/wrok.md"));
    house.work("flow.yaml", AGENT).expect(2, &["flow.yaml:2:", "prompts/wrok.md"]);
    assert_eq!(house.read("before"), "");
    assert!(!house.state().exists(), "nothing was journaled");
}

#[test]
fn a_run_whose_repository_is_gone_waits_for_it_to_come_back() {
    let house = resting();
    let aside = house.folder().join("aside");
    std::fs::rename(house.repo(), &aside).unwrap();
    let said = house.run(&["answer", "last", "approve", "yes", "--resume"]);
    said.expect(2, &[house.repo().to_str().unwrap(), "is not there", "resume"]);
    std::fs::rename(&aside, house.repo()).unwrap();
    // The answer was taken all the same.
    house.run(&["resume", "last"]).expect(0, &["done"]);
    assert_eq!(house.count("answered"), 1);
    house.is_whole();
}
