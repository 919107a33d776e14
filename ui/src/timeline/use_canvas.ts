/** A canvas that is drawn again, at most once a frame, when something that its drawing read has changed. */

import { effect } from '@preact/signals';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** `draw` may read signals; each change asks for a frame. */
export function useDrawing(draw: () => void, dependencies: readonly unknown[]): void {
  const latest = useRef(draw);
  latest.current = draw;
  useLayoutEffect(() => {
    let frame = 0;
    let isDisposed = false;
    let stop: (() => void) | undefined;
    const run = () => {
      frame = 0;
      if (isDisposed) return;
      stop?.();
      let isFirst = true;
      // Drawn once inside the effect to learn what it reads; a change then asks for one new frame.
      stop = effect(() => {
        if (isFirst) {
          isFirst = false;
          latest.current();
        } else if (frame === 0) frame = requestAnimationFrame(run);
      });
    };
    run();
    return () => {
      isDisposed = true;
      cancelAnimationFrame(frame);
      stop?.();
    };
  }, dependencies);
}

/** The size of an element, as it changes. */
export function useSize<T extends HTMLElement>(): [{ current: T | null }, Size] {
  const element = useRef<T>(null);
  const [size, setSize] = useState<Size>({ width: 0, height: 0 });
  useLayoutEffect(() => {
    if (element.current === null) return;
    const watched = element.current;
    const measure = () =>
      setSize((now) =>
        now.width === watched.clientWidth && now.height === watched.clientHeight
          ? now
          : { width: watched.clientWidth, height: watched.clientHeight },
      );
    const observer = new ResizeObserver(measure);
    observer.observe(watched);
    measure();
    return () => observer.disconnect();
  }, []);
  return [element, size];
}
