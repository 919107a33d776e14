/** Columns of numbers from bytes: a head in JSON that names them, then the columns (strobe/timeline/packet.py). */

export interface Packet<About> {
  readonly about: About;
  readonly columns: Readonly<Record<string, Column>>;
}

export type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;

interface Listed {
  readonly name: string;
  readonly type: string;
  readonly at: number;
  readonly length: number;
}

export function unpacked<About>(bytes: ArrayBuffer): Packet<About> {
  const headLength = new DataView(bytes).getUint32(0, true);
  const head = JSON.parse(
    new TextDecoder().decode(new Uint8Array(bytes, 4, headLength)),
  ) as About & { columns: readonly Listed[] };
  const start = 4 + headLength;
  const columns = Object.fromEntries(
    head.columns.map(({ name, type, at, length }) => [
      name,
      column(bytes, type, start + at, length),
    ]),
  );
  return { about: head, columns };
}

/** Columns begin at multiples of it, as typed arrays need. */
const ALIGNMENT = 8;
const TYPES = new Map<unknown, string>([
  [Uint8Array, 'uint8'],
  [Uint16Array, 'uint16'],
  [Uint32Array, 'uint32'],
  [Float64Array, 'float64'],
]);

export function packed(about: object, columns: Readonly<Record<string, Column>>): ArrayBuffer {
  let at = 0;
  const listed = Object.entries(columns).map(([name, column]) => {
    const place = { name, type: TYPES.get(column.constructor), at, length: column.length };
    at += Math.ceil(column.byteLength / ALIGNMENT) * ALIGNMENT;
    return place;
  });
  const text = new TextEncoder().encode(JSON.stringify({ ...about, columns: listed }));
  const headLength = Math.ceil((text.length + 4) / ALIGNMENT) * ALIGNMENT - 4;
  const bytes = new Uint8Array(4 + headLength + at).fill(0x20, 4, 4 + headLength);
  new DataView(bytes.buffer).setUint32(0, headLength, true);
  bytes.set(text, 4);
  Object.values(columns).forEach((column, number) => {
    bytes.set(
      new Uint8Array(column.buffer, column.byteOffset, column.byteLength),
      4 + headLength + (listed[number]?.at ?? 0),
    );
  });
  return bytes.buffer;
}

function column(bytes: ArrayBuffer, type: string, at: number, length: number): Column {
  switch (type) {
    case 'uint8':
      return new Uint8Array(bytes, at, length);
    case 'uint16':
      return new Uint16Array(bytes, at, length);
    case 'uint32':
      return new Uint32Array(bytes, at, length);
    case 'float64':
      return new Float64Array(bytes, at, length);
    default:
      throw new Error(`no columns of type ${type}`);
  }
}
