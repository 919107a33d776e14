/** A tree as boxes: the width of a box is its value, and children lie within their parent. */

export interface Branch {
  /** The path, with dots: net.layers.0 lies in net.layers. Empty: the whole. */
  readonly scope: string;
  readonly value: number;
}

export interface Box<T extends Branch> {
  readonly branch: T;
  readonly depth: number;
  /** Left edge and width, as parts of the whole width. */
  readonly left: number;
  readonly width: number;
}

/** Narrower boxes would be less than a pixel. */
const NARROWEST = 0.0008;

/** The boxes of a branch and all below it, or of the whole tree. Branches come in the order of the tree. */
export function layout<T extends Branch>(branches: readonly T[], root: string | null): Box<T>[] {
  const known = new Map(branches.map((branch) => [branch.scope, branch]));
  const children = new Map<string | null, T[]>();
  for (const branch of branches) {
    const parent = parentOf(branch.scope, known);
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [branch]);
    else siblings.push(branch);
  }
  const chosen = root === null ? undefined : known.get(root);
  const tops = chosen === undefined ? (children.get(null) ?? []) : [chosen];
  const whole = tops.reduce((sum, top) => sum + top.value, 0);
  const boxes: Box<T>[] = [];
  const place = (branch: T, depth: number, left: number) => {
    const width = whole > 0 ? branch.value / whole : 0;
    if (width < NARROWEST) return;
    boxes.push({ branch, depth, left, width });
    let next = left;
    for (const child of children.get(branch.scope) ?? []) {
      place(child, depth + 1, next);
      next += whole > 0 ? child.value / whole : 0;
    }
  };
  let left = 0;
  for (const top of tops) {
    place(top, 0, left);
    left += whole > 0 ? top.value / whole : 0;
  }
  return boxes;
}

function parentOf(scope: string, known: ReadonlyMap<string, unknown>): string | null {
  if (scope === '') return null;
  for (let at = scope.lastIndexOf('.'); at > 0; at = scope.lastIndexOf('.', at - 1)) {
    const above = scope.slice(0, at);
    if (known.has(above)) return above;
  }
  return known.has('') ? '' : null;
}
