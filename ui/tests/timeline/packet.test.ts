import { expect, test } from 'vitest';
import { packed, unpacked } from '../../src/timeline/packet';

test('columns come out as they went in', () => {
  const columns = {
    bytes: Uint8Array.of(1, 2, 255),
    places: Uint16Array.of(7, 65_535),
    names: Uint32Array.of(4_294_967_295),
    times: Float64Array.of(0.5, -1e300, NaN),
    none: new Float64Array(),
  };
  const { about, columns: found } = unpacked<{ shift: number; word: string }>(
    packed({ shift: 3, word: '步 ü' }, columns),
  );
  expect(about).toMatchObject({ shift: 3, word: '步 ü' });
  expect(found).toEqual(columns);
});

test('a column that is a part of a longer one is that part', () => {
  const part = Uint16Array.of(1, 2, 3, 4).subarray(1, 3);
  expect(unpacked(packed({}, { part })).columns['part']).toEqual(Uint16Array.of(2, 3));
});

test('a type of another version is an error, not wrong numbers', () => {
  const bytes = new Uint8Array(packed({}, { a: Uint8Array.of(1) }));
  const text = new TextDecoder().decode(bytes).replace('uint8', 'uint9');
  expect(() => unpacked(new TextEncoder().encode(text).buffer as ArrayBuffer)).toThrow('uint9');
});
