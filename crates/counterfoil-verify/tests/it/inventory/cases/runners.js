import { describe, it, expect } from 'vitest';

const pattern = /x/;
pattern.test('x');
helper('it works', () => {});

it('stands alone', () => {
  expect(add(1, 2)).toBe(3);
});

describe('adding', () => {
  beforeEach(() => { reset(); });

  it('adds', async () => { await go(); });
  test("is \"quoted\"", function () { go(); });
  it(`has a ${template}`, () => go());

  describe('numbers', function () {
    it('nests', (done) => { go(done); });
    it.skip('is skipped', () => { go(); });
    xit('is skipped in the old way', () => { go(); });
    it.todo('is to be written');
    it('is pending');
    it('skips itself', function () { this.skip(); go(); });
    it('may fail').fails;
    it.fails('is known to fail', () => { go(); });
  });

  describe.skip('left out', () => {
    it('inherits', () => { go(); });
    describe('deeper', () => { it('inherits too', () => { go(); }); });
  });

  it.each([[1, 2], [3, 4], [5, 6]])('adds %d and %d', (a, b) => { check(a, b); });
  it.each`
    a | b
    ${1} | ${2}
  `('adds by table $a', ({ a, b }) => { check(a, b); });
  describe.each([1, 2])('for %d', (n) => { it('goes', () => { check(n); }); });
  it.skipIf(windows)('under a condition', () => { go(); });
  it.concurrent('at once', async () => { await go(); });

  for (const n of [1, 2]) {
    it('is made in a loop ' + n, () => { check(n); });
  }

  it('is empty', () => {});
  it('has only a comment', () => { /* expect(add(1, 2)).toBe(3); */ });
  it('has only constants', () => { expect(true).toBe(true); });
  it('is only done', (done) => { done(); });
  it('returns at once', () => { return; expect(add(1, 2)).toBe(3); });
  it('returns a promise', () => { return go(); });
  it('has a function by name', check);
  // it('is commented out', () => { go(); });
});

test('with options', { skip: true }, () => { go(); });
test('with other options', { timeout: 100 }, () => { go(); });
Deno.test('in deno', () => { go(); });
Deno.test({ name: 'by object', ignore: true, fn() { go(); } });
QUnit.module('unit', () => { QUnit.test('works', (assert) => { assert.ok(go()); }); });
test.describe('in a browser', () => { test('opens', async ({ page }) => { await page.goto('/'); }); });
test.beforeEach(async () => { await go(); });
test.step('is none', () => { go(); });
