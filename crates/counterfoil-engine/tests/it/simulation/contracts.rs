//! The contracts of the simulation.

use counterfoil_contract::{Definition, Registry};

/// The contracts of the agents of random workflows. Attempts return one of the examples.
const CONTRACTS: [&str; 4] = [
    r"
contract: sim/make
version: 1
fields: { summary: string, files?: [path] }
claims: { files: { kind: files-changed } }
examples: [{ summary: first }, { summary: second, files: [a.rs] }, { summary: third }]
",
    r"
contract: sim/check
version: 1
fields: { passed: boolean, topic: red | green | blue, note?: string }
examples:
  - { passed: true, topic: red }
  - { passed: true, topic: green, note: fine }
  - { passed: false, topic: red, note: one }
  - { passed: false, topic: red, note: two }
  - { passed: false, topic: blue }
",
    r"
contract: sim/fork
version: 1
fields: { where: left | right }
examples: [{ where: left }, { where: right }]
",
    r#"
contract: sim/plan
version: 1
schema:
  type: object
  required: [tasks]
  properties:
    tasks:
      type: array
      items:
        type: object
        required: [id, after, rank, size]
        properties:
          id: { type: string }
          after: { type: array, items: { type: string } }
          rank: { type: integer }
          size: { type: integer }
examples:
  - { tasks: [] }
  - { tasks: [{ id: a, after: [], rank: 1, size: 1 }] }
  - { tasks: [{ id: a, after: [], rank: 3, size: 1 }, { id: b, after: [], rank: 1, size: 2 }, { id: c, after: [], rank: 2, size: 5 }] }
  - { tasks: [{ id: a, after: [], rank: 1, size: 1 }, { id: b, after: [a], rank: 1, size: 2 }, { id: c, after: [a, b], rank: 0, size: 5 }, { id: d, after: [a], rank: 0, size: 1 }] }
  - { tasks: [{ id: a, after: [b], rank: 1, size: 1 }, { id: b, after: [a], rank: 1, size: 1 }] }
  - { tasks: [{ id: a, after: [], rank: 1, size: 1 }, { id: a, after: [], rank: 1, size: 1 }] }
  - { tasks: [{ id: a, after: [nowhere], rank: 1, size: 1 }] }
  - { tasks: [{ id: "x#1", after: [], rank: 0, size: 1 }, { id: "x#2", after: [], rank: 0, size: 1 }, { id: "a/b~c", after: ["x#1"], rank: 0, size: 3 }] }
  - { tasks: [{ id: one, after: [], rank: 0, size: 4 }, { id: two, after: [], rank: 0, size: 0 }, { id: three, after: [one], rank: 0, size: 4 }] }
  - { tasks: [{ id: a, after: [], rank: 0, size: 1 }, { id: b, after: [], rank: 0, size: 1 }, { id: c, after: [], rank: 0, size: 1 }, { id: d, after: [], rank: 0, size: 1 }, { id: e, after: [a, c], rank: 0, size: 1 }] }
"#,
];

/// The contracts of random workflows, compiled once.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::new();
    let shipped =
        include_str!("../../../../counterfoil-packs/published/execution-loop/implementer@1.yaml");
    for text in CONTRACTS.iter().copied().chain([shipped]) {
        let definition = Definition::from_yaml(text, "contract.yaml").expect("the contract reads");
        registry.add(definition).expect("the contract is new");
    }
    registry
}
