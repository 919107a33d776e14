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
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, headLength))) as About & { columns: readonly Listed[] };
  const start = 4 + headLength;
  const columns = Object.fromEntries(head.columns.map(({ name, type, at, length }) => [name, column(bytes, type, start + at, length)]));
  return { about: head, columns };
}

function column(bytes: ArrayBuffer, type: string, at: number, length: number): Column {
  switch (type) {
    case 'uint8': return new Uint8Array(bytes, at, length);
    case 'uint16': return new Uint16Array(bytes, at, length);
    case 'uint32': return new Uint32Array(bytes, at, length);
    case 'float64': return new Float64Array(bytes, at, length);
    default: throw new Error(`no columns of type ${type}`);
  }
}
