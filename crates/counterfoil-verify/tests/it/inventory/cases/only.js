describe('a', () => {
  it('is left out', () => { go(); });
  it.only('runs', () => { go(); });
  it('is left out too', () => { go(); });
});
fdescribe('b', () => { it('runs as well', () => { go(); }); });
