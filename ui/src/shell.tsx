/** What surrounds every page: the head with the menu, the help, and the page that the address names. */

import type { FunctionComponent } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Help, isHelpOpen } from './help';
import { language, setLanguage, t } from './i18n';
import { useShortcuts, type Shortcut } from './keys';
import { PAGES, type Page } from './pages';
import { go, href, hrefOfPage, route } from './router';
import { setTheme, theme } from './theme';
import { Failure, ofRun, useAnswer } from './api';
import { FailureNote, ProgressNote } from './components/loaded';

export function Shell() {
  const { page: name, run: asked } = route.value;
  const isUnknown = useUnknown(asked);
  // Pages of a run that is not there would all say the same.
  const run = isUnknown ? null : asked;
  const page = PAGES.find(
    (candidate) => candidate.name === name && (!candidate.isOfRun || run !== null),
  );
  useShortcuts(
    'shell.keys.everywhere',
    useMemo(() => keysEverywhere(run), [run]),
  );
  useEffect(() => {
    document.title = [page && t(page.title), run, 'Strobe'].filter(Boolean).join(' · ');
  }, [page, run, language.value]);
  return (
    <>
      <a class="skip" href="#page" onClick={skipToPage}>
        {t('shell.skip')}
      </a>
      <Head run={run} current={name} />
      <main id="page" tabIndex={-1}>
        {isUnknown ? (
          <NotFound title={t('shell.noSuchRun', { run: asked! })} />
        ) : page === undefined ? (
          <NotFound title={t('shell.noSuchPage', { page: name })} />
        ) : (
          <Opened page={page} run={run ?? ''} />
        )}
      </main>
      <Help />
    </>
  );
}

function Head({ run, current }: { run: string | null; current: string }) {
  const menu = useRef<HTMLElement>(null);
  // On a phone the menu scrolls: where one is should be seen.
  useEffect(
    () =>
      menu.current
        ?.querySelector('[aria-current]')
        ?.scrollIntoView({ block: 'nearest', inline: 'center' }),
    [run, current],
  );
  const shown = PAGES.filter((page) => page.isOfRun && run !== null);
  return (
    <header class="head">
      <a class="brand" href={hasPage('runs') ? href('runs') : '#'}>
        Strobe
      </a>
      <nav ref={menu} aria-label={t('shell.pages')}>
        {hasPage('runs') && (
          <a href={href('runs')} aria-current={current === 'runs' ? 'page' : undefined}>
            {t('runs.title')}
          </a>
        )}
        {run !== null && (
          <span class="head-run" title={run}>
            {run}
          </span>
        )}
        {shown.map((page) => (
          <a
            key={page.name}
            href={hrefOfPage(page.name, run!)}
            aria-current={page.name === current ? 'page' : undefined}
          >
            {menuTitle(page)}
          </a>
        ))}
        {hasPage('compare') && (
          <a
            href={run === null ? href('compare') : href('compare', null, { b: run })}
            aria-current={current === 'compare' ? 'page' : undefined}
          >
            {t('compare.title')}
          </a>
        )}
      </nav>
      <div class="head-tools">
        <button
          type="button"
          class="quiet"
          onClick={otherLanguage}
          aria-label={t('shell.language')}
        >
          {language.value === 'en' ? '中文' : 'English'}
        </button>
        <button type="button" class="quiet" onClick={otherTheme}>
          {t(theme.value === 'dark' ? 'shell.toLight' : 'shell.toDark')}
        </button>
        <button
          type="button"
          class="quiet"
          onClick={() => (isHelpOpen.value = true)}
          aria-label={t('shell.help')}
        >
          ?
        </button>
      </div>
    </header>
  );
}

/** An exported file has not all of them. */
function hasPage(name: string): boolean {
  return PAGES.some((page) => page.name === name);
}

/** Without the English word that Chinese titles have in brackets: the menu is one line. */
function menuTitle(page: Page): string {
  return t(page.title).replace(/（.*）/, '');
}

/** A page, once its code has come. */
function Opened({ page, run }: { page: Page; run: string }) {
  const [loaded, setLoaded] = useState<{
    name: string;
    Component: FunctionComponent<{ run: string }>;
  } | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  useEffect(() => {
    let isCurrent = true;
    setFailure(null);
    page.load().then(
      (module) => isCurrent && setLoaded({ name: page.name, Component: module.default }),
      () =>
        isCurrent && setFailure(new Failure(t('shell.pageFailed'), t('shell.pageFailedHint'), 0)),
    );
    return () => {
      isCurrent = false;
    };
  }, [page]);
  if (failure !== null) return <FailureNote failure={failure} />;
  if (loaded?.name !== page.name) return <ProgressNote progress={null} />;
  return <loaded.Component key={`${page.name} ${run}`} run={run} />;
}

/** Whether the server knows no such run. */
function useUnknown(run: string | null): boolean {
  const about = useAnswer<unknown>(run === null ? null : ofRun(run));
  return run !== null && about.state === 'failed' && about.failure.status === 404;
}

function NotFound({ title }: { title: string }) {
  return (
    <div class="page">
      <h1>{title}</h1>
      <a href={href('runs')}>{t('shell.backToRuns')}</a>
    </div>
  );
}

function keysEverywhere(run: string | null): Shortcut[] {
  const pages = PAGES.filter((page) => page.isOfRun);
  const toPages: Shortcut[] =
    run === null
      ? []
      : pages.map((page, at) => ({
          code: `Digit${at + 1}`,
          does: 'shell.keys.page',
          run: () => go(hrefOfPage(page.name, run)),
        }));
  return [
    {
      code: '?',
      does: 'shell.keys.help',
      worksInDialogs: true,
      run: () => (isHelpOpen.value = !isHelpOpen.value),
    },
    { code: '/', does: 'shell.keys.search', run: focusSearch },
    ...toPages,
    { code: 'KeyR', shift: true, does: 'shell.keys.runs', run: () => go(href('runs')) },
    { code: 'KeyT', shift: true, does: 'shell.keys.theme', run: otherTheme },
    { code: 'KeyL', shift: true, does: 'shell.keys.language', run: otherLanguage },
  ];
}

function otherTheme(): void {
  setTheme(theme.value === 'dark' ? 'light' : 'dark');
}

function otherLanguage(): void {
  setLanguage(language.value === 'en' ? 'zh' : 'en');
}

/** A page marks its main search field with type="search". */
function focusSearch(): void {
  document.querySelector<HTMLInputElement>('main input[type="search"]')?.focus();
}

/** The address is the route, so the link that skips the menu must not change it. */
function skipToPage(event: Event): void {
  event.preventDefault();
  document.getElementById('page')?.focus();
}
