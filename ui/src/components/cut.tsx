/** A name that may be too long for its place: cut in the middle, so that names with the same beginning still differ. */

import './cut.css';

/** Letters at the end that are always shown. */
const TAIL = 14;

interface Props {
  readonly text: string;
  /** More for paths, whose last parts say what they are. */
  readonly tail?: number;
}

/** For monospaced text: the end has a known width. */
export function Cut({ text, tail = TAIL }: Props) {
  if (text.length <= tail * 1.5) return <>{text}</>;
  const at = text.length - tail;
  return (
    <span class="cut">
      <span class="cut-head" style={{ maxWidth: `calc(100% - ${tail}ch)` }}>
        {text.slice(0, at)}
      </span>
      {text.slice(at)}
    </span>
  );
}
