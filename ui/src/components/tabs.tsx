/** One of several views of a page; which one stands in the address. */

import { route, setQuery } from '../router';

interface Tab {
  readonly name: string;
  readonly title: string;
}

/** The chosen tab: the one in the address, or the first. */
export function chosenTab(tabs: readonly Tab[], id = 'tab'): string {
  const asked = route.value.query[id];
  return tabs.find((tab) => tab.name === asked)?.name ?? tabs[0]?.name ?? '';
}

export function Tabs({
  tabs,
  label,
  id = 'tab',
}: {
  tabs: readonly Tab[];
  label: string;
  id?: string;
}) {
  const chosen = chosenTab(tabs, id);
  const choose = (at: number) => {
    const tab = tabs[(at + tabs.length) % tabs.length];
    if (tab !== undefined)
      setQuery({ [id]: tab.name === tabs[0]?.name ? null : tab.name }, { push: true });
  };
  return (
    <div class="tabs" role="tablist" aria-label={label}>
      {tabs.map((tab, at) => (
        <button
          key={tab.name}
          type="button"
          role="tab"
          aria-selected={tab.name === chosen}
          tabIndex={tab.name === chosen ? 0 : -1}
          ref={(button) => {
            if (
              button !== null &&
              tab.name === chosen &&
              button.parentElement?.contains(document.activeElement)
            )
              button.focus();
          }}
          onClick={() => choose(at)}
          onKeyDown={(event) => {
            if (event.key === 'ArrowRight') choose(at + 1);
            if (event.key === 'ArrowLeft') choose(at - 1);
          }}
        >
          {tab.title}
        </button>
      ))}
    </div>
  );
}
