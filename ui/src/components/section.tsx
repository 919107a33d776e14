import type { ComponentChildren } from 'preact';

interface Props {
  readonly title: string;
  /** A sentence under the title: what is seen. */
  readonly about?: string | undefined;
  /** Buttons and choices at the right of the title. */
  readonly tools?: ComponentChildren;
  readonly children: ComponentChildren;
  readonly id?: string;
}

/** A titled part of a page. */
export function Section({ title, about, tools, children, id }: Props) {
  return (
    <section class="section" id={id} aria-label={title}>
      <header class="section-head">
        <h2>{title}</h2>
        {about !== undefined && <p class="dim">{about}</p>}
        {tools !== undefined && <div class="section-tools">{tools}</div>}
      </header>
      {children}
    </section>
  );
}
