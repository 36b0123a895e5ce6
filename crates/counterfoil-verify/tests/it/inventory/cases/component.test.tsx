import type { Props } from './button';

interface Row { id: number; name?: string }
type Fn<T> = (x: T) => Promise<void>;
declare const api: Api;
enum Colour { Red, Green }

const wait = async (ms: number): Promise<void> => new Promise<void>((r) => setTimeout(r, ms));

abstract class Page<T extends object> {
  private readonly url: string = '/';
  constructor(protected page: T, public name?: string) {}
  async open(): Promise<T> { return this.page!; }
}

describe('Button', () => {
  let props: Props;
  const rows: Row[] = [];
  const map = new Map<string, number>();

  beforeEach((): void => {
    props = { label: 'x' } as Props;
  });

  it('renders', () => {
    render(<Button {...props} onClick={() => go()} />);
    expect(screen.getByText('x')).toBeInTheDocument();
  });

  it('has types', async (): Promise<void> => {
    const row: Row = rows[0]!;
    const first = (await load<Row>(row.id)) as unknown as Row;
    expect(first satisfies Row).toEqual<Row>(row);
  });

  it.each<[number, string]>([[1, 'a'], [2, 'b']])('row %d', (id: number, name: string) => {
    expect(find(id)?.name).toBe(name);
  });

  it.skip('is skipped', async ({ page }: { page: Page }) => {
    await page.click('x');
  });

  test('mocks', () => {
    const spy = jest.fn<void, [string]>();
    const mocked = go as jest.MockedFunction<typeof go>;
    mocked.mockImplementation((x: number): number => x);
    expect(spy).not.toHaveBeenCalled();
  });

  it('is empty', async (): Promise<void> => {});
});

describe.skip('left out', (): void => {
  it('inherits', () => { go(); });
});
