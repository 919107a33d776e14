import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Failure, address, get, getBytes, ofRun, post, records, setSource } from '../src/api';

const asked: { where: string; init: RequestInit }[] = [];
let answers: (() => Response)[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  asked.length = 0;
  setSource(async (where, init) => {
    asked.push({ where, init });
    return answers.shift()!();
  });
});
afterEach(() => vi.useRealTimers());

const json =
  (body: object, status = 200) =>
  () =>
    Response.json(body, { status });

test('an address has what was given, and nothing that is empty', () => {
  expect(address('runs', { a: 1, b: null, c: undefined, d: '', e: true, f: false })).toBe(
    'api/runs?a=1&e=1&f=0',
  );
  expect(address(ofRun('day 1/demo', 'table/steps'))).toBe('api/runs/day%201%2Fdemo/table/steps');
});

test('an answer that is being worked out is asked for again, less and less often', async () => {
  answers = [
    json({ ok: true, working: { done: 1, of: 4 } }, 202),
    json({ ok: true, working: { done: 3, of: 4 } }, 202),
    json({ ok: true, value: 5 }),
  ];
  const progress: unknown[] = [];
  const answer = get('run', {}, { onProgress: (one) => progress.push(one) });
  await vi.advanceTimersByTimeAsync(150);
  expect(asked.length).toBe(2);
  await vi.advanceTimersByTimeAsync(224);
  expect(asked.length).toBe(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(await answer).toEqual({ ok: true, value: 5 });
  expect(progress).toEqual([
    { done: 1, of: 4 },
    { done: 3, of: 4 },
  ]);
});

test('a question that nobody needs any more is not asked again', async () => {
  answers = [json({ ok: true }, 202)];
  const stop = new AbortController();
  const answer = get('run', {}, { signal: stop.signal });
  const failure = answer.catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(10);
  stop.abort();
  expect((await failure) as DOMException).toMatchObject({ name: 'AbortError' });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked.length).toBe(1);
});

test('a failure has the words of the server, and its hint', async () => {
  answers = [json({ ok: false, error: 'no such run', hint: 'strobe status' }, 404)];
  const failure = await get('run').catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(Failure);
  expect(failure).toMatchObject({ message: 'no such run', hint: 'strobe status', status: 404 });
});

test('bytes fail with the same words', async () => {
  answers = [json({ ok: false, error: 'no such index', hint: null }, 422)];
  await expect(getBytes('tiles')).rejects.toMatchObject({ message: 'no such index', status: 422 });
});

test('a proxy that answers with a page of its own is a failure too', async () => {
  answers = [
    () => new Response('<h1>Bad gateway</h1>', { status: 502, statusText: 'Bad Gateway' }),
  ];
  await expect(get('run')).rejects.toThrow('The server answered 502 Bad Gateway');
});

test('a server that is gone is named as the reason', async () => {
  answers = [
    () => {
      throw new TypeError('fetch failed');
    },
  ];
  await expect(get('run')).rejects.toMatchObject({ status: 0 });
});

test('what changes something carries the header that other sites cannot send', async () => {
  answers = [json({ ok: true })];
  await post('runs/remove', { id: 'demo' });
  expect(asked[0]?.init).toMatchObject({ method: 'POST', body: '{"id":"demo"}' });
  expect(asked[0]?.init.headers).toMatchObject({ 'X-Strobe': '1' });
});

test('rows become records by the names of their columns', () => {
  const columns = ['a', 'b'].map((name) => ({ name, type: 'i64', doc: '' }));
  expect(records({ table: 't', columns, rows: [[1, null]], total: 1 })).toEqual([
    { a: 1, b: null },
  ]);
});
