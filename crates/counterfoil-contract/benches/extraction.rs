//! Extraction and validation against a compiled contract, single thread. `cargo bench -p
//! counterfoil-contract`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]
#![allow(missing_docs)]

mod support;

use counterfoil_contract::Contract;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

const SIZES: [(usize, usize); 3] = [(6_000, 2_000), (50_000, 10_000), (1_000_000, 200_000)];

fn measure(bencher: Bencher<'_, '_>, contract: &Contract, text: &str) {
    assert!(contract.check(text).is_accepted());
    bencher.counter(BytesCount::of_str(text)).bench(|| contract.check(black_box(text)));
}

#[divan::bench(args = SIZES.map(|(text, _)| text))]
fn fenced(bencher: Bencher<'_, '_>, size: usize) {
    let (text, _) = support::answer(size, SIZES.iter().find(|sizes| sizes.0 == size).unwrap().1);
    measure(bencher, &support::review_contract(), &text);
}

#[divan::bench(args = SIZES.map(|(text, _)| text))]
fn anywhere(bencher: Bencher<'_, '_>, size: usize) {
    let (text, _) = support::answer(size, SIZES.iter().find(|sizes| sizes.0 == size).unwrap().1);
    measure(bencher, &support::any_contract(), &text);
}

#[divan::bench(args = SIZES.map(|(_, json)| json))]
fn floor_serde_json_on_the_json_alone(bencher: Bencher<'_, '_>, size: usize) {
    let (_, json) = support::answer(size * 5, size);
    bencher
        .counter(BytesCount::of_str(&json))
        .bench(|| serde_json::from_str::<serde_json::Value>(black_box(&json)));
}

#[divan::bench(args = [1_000_000, 8_000_000], sample_count = 10)]
fn hostile_strict(bencher: Bencher<'_, '_>, size: usize) {
    let contract = support::any_contract();
    let texts = support::hostile(size);
    let bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        texts
            .iter()
            .map(|(_, text)| contract.check(black_box(text)).violations.len())
            .sum::<usize>()
    });
}

#[divan::bench]
fn compile_a_contract(bencher: Bencher<'_, '_>) {
    let definition = support::review_contract().definition().clone();
    bencher.bench(|| Contract::compile(black_box(definition.clone())));
}
