/** The verdict and the findings: what each costs, where it is seen, what to change. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { useAnswer } from '../../api';
import { Cut } from '../../components/cut';
import { Loaded } from '../../components/loaded';
import { sentence } from '../../components/words';
import { Section } from '../../components/section';
import { language, t } from '../../i18n';
import * as units from '../../units';
import type { Advice, Evidence, Finding } from './answers';
import { Derivation } from './derivation';
import { placesOf } from './places';

/** Places shown beside a finding at once; the rows behind "Evidence" lead to all. */
const FIRST_PLACES = 4;

export function Findings({ run, advice }: { run: string; advice: Advice }) {
  const [manual, setManual] = useState<string | null>(null);
  return (
    <>
      <p class="verdict" role="status">
        {verdict(advice)}
      </p>
      {(advice.conditions ?? []).map((condition) => (
        <Condition
          key={condition.rule}
          run={run}
          condition={condition}
          advice={advice}
          onManual={setManual}
        />
      ))}
      <Section
        title={t('overview.findings')}
        about={advice.findings.length > 1 ? t('overview.findingsAbout') : undefined}
      >
        {advice.findings.length === 0 && <p>{t('overview.nothing')}</p>}
        {advice.findings.length > 0 && (
          <ol class="findings">
            {advice.findings.map((finding) => (
              <OneFinding
                key={`${finding.rule} ${finding.title}`}
                run={run}
                finding={finding}
                advice={advice}
                onManual={setManual}
              />
            ))}
          </ol>
        )}
        <OtherRules advice={advice} onManual={setManual} />
      </Section>
      {manual !== null && <Manual rule={manual} onDone={() => setManual(null)} />}
    </>
  );
}

/** The text of a rule, in the language of the page where the server has it, else in English. */
function Said({ advice, text }: { advice: Advice; text: string }) {
  const told = inLanguage(advice, text);
  return told === undefined ? <span lang="en">{sentence(text)}</span> : <>{told}</>;
}

function inLanguage(advice: Advice, text: string): string | undefined {
  return language.value === 'zh' ? advice.chinese?.[text] : undefined;
}

function verdict(advice: Advice): string {
  return inLanguage(advice, advice.verdict) ?? advice.verdict;
}

/** A gain below this is shown as a percentage, as in strobe/advise/verdict.py. */
const FEWEST_TIMES = 1.2;

/** As each language writes it: "20% faster", "2.6× faster"; in Chinese 原来的 1.20 倍. */
function speedup({ expected_speedup: expected, speedup_range: range }: Finding): { gain: string } {
  const bounds = range ?? [expected];
  const written = language.value === 'zh' ? factorOf : gained;
  return { gain: bounds.map(written).join(t('overview.to')) };
}

function gained(factor: number): string {
  return factor < FEWEST_TIMES ? units.percent(factor - 1) : units.times(factor);
}

function factorOf(factor: number): string {
  return factor < FEWEST_TIMES ? factor.toFixed(2) : units.times(factor).replace('×', '');
}

function OneFinding({
  run,
  finding,
  advice,
  onManual,
}: {
  run: string;
  finding: Finding;
  advice: Advice;
  onManual: (rule: string) => void;
}) {
  const places = finding.evidence
    .flatMap((evidence) => placesOf(run, evidence).slice(0, FIRST_PLACES - 1))
    .slice(0, FIRST_PLACES);
  return (
    <li class="finding">
      <div class="finding-cost">
        <span class="finding-share">{units.percent(finding.share)}</span>
        <span class="finding-track" aria-hidden="true">
          <span style={{ width: `${Math.min(1, finding.share) * 100}%` }} />
        </span>
        <span class="dim small">
          {t('overview.cost', { time: units.duration(finding.cost_ns) })}
        </span>
        {finding.saves_at_start_ns ? (
          <span class="gain">
            {t('overview.atStart', { time: units.duration(finding.saves_at_start_ns) })}
          </span>
        ) : (
          finding.expected_speedup > 1.005 && (
            <span class="gain">{t('overview.faster', speedup(finding))}</span>
          )
        )}
      </div>
      <div class="finding-text">
        <h3>
          <button
            type="button"
            class="chip mono"
            title={t('overview.manual')}
            onClick={() => onManual(finding.rule)}
          >
            {finding.rule}
          </button>
          {!finding.is_certain && <span class="tag">{t('overview.estimated')}</span>}
          {finding.is_warning && <span class="tag">{t('overview.warning')}</span>}
          {finding.where !== null && <code class="dim">{finding.where}</code>}
        </h3>
        <p class="finding-title">
          <Said advice={advice} text={finding.title} />
        </p>
        {finding.why && (
          <p class="finding-why">
            <Said advice={advice} text={finding.why} />
          </p>
        )}
        <h4>{t('overview.fix')}</h4>
        <ul class="fixes">
          {finding.fixes.map((fix) => (
            <li key={fix}>
              <Said advice={advice} text={fix} />
            </li>
          ))}
        </ul>
        <Derivation
          of={units.percent(finding.share)}
          figures={finding.derivation ?? []}
          said={(text) => inLanguage(advice, text) ?? text}
        />
        {places.length > 0 && (
          <p class="places">
            <span class="dim">{t('overview.evidence')}</span>
            {places.map((place) => (
              <a key={place.href} class="chip place" href={place.href} title={place.title}>
                <Cut text={place.title} tail={26} />
              </a>
            ))}
          </p>
        )}
        {finding.evidence.map((evidence) => (
          <EvidenceRows key={evidence.table} run={run} evidence={evidence} />
        ))}
      </div>
    </li>
  );
}

/** A condition of the recording: not a fault of the training, but all figures depend on it. */
function Condition({
  run,
  condition,
  advice,
  onManual,
}: {
  run: string;
  condition: Finding;
  advice: Advice;
  onManual: (rule: string) => void;
}) {
  return (
    <div class="note note-warn condition">
      <p>
        <RuleButton rule={condition.rule} onManual={onManual} />{' '}
        <strong>
          <Said advice={advice} text={condition.title} />
        </strong>
      </p>
      {condition.fixes.map((fix) => (
        <p key={fix}>
          <Said advice={advice} text={fix} />
        </p>
      ))}
      {condition.evidence.map((evidence) => (
        <EvidenceRows key={evidence.table} run={run} evidence={evidence} />
      ))}
    </div>
  );
}

function EvidenceRows({ run, evidence }: { run: string; evidence: Evidence }) {
  const names = Object.keys(evidence.rows[0] ?? {}).filter((name) =>
    evidence.rows.some((row) => row[name] != null),
  );
  if (names.length === 0) return null;
  return (
    <details>
      <summary>{t('overview.evidenceTable', { table: evidence.table })}</summary>
      <div
        class="plain-table-frame"
        tabIndex={0}
        role="region"
        aria-label={t('overview.evidenceTable', { table: evidence.table })}
      >
        <table class="plain-table">
          <thead>
            <tr>
              {names.map((name) => (
                <th key={name} scope="col">
                  {name.replace(/_ns$/, '')}
                </th>
              ))}
              <th scope="col">
                <span class="only-read-aloud">{t('overview.jump.timeline')}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {evidence.rows.map((row, at) => {
              const [place] = placesOf(run, { table: evidence.table, rows: [row] });
              return (
                <tr key={at}>
                  {names.map((name) => (
                    <td key={name} class={typeof row[name] === 'number' ? 'number' : undefined}>
                      {shown(name, row[name] ?? null)}
                    </td>
                  ))}
                  <td>
                    {place && (
                      <a href={place.href} aria-label={place.title}>
                        →
                      </a>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** A value by the unit that ends its column's name. */
function shown(name: string, value: string | number | boolean | null): string {
  if (value === null) return '';
  if (typeof value === 'boolean') return value ? '✓' : '';
  if (typeof value === 'string') return value;
  if (name === 'ts_ns') return units.moment(value);
  if (name.endsWith('_ns')) return units.duration(value);
  if (name.endsWith('bytes')) return units.size(value);
  if (name.endsWith('share') || name.endsWith('_ratio')) return units.percent(value);
  return /(^|_)(id|step|rank|line|worker|position|loader)$/.test(name)
    ? String(value)
    : units.count(value);
}

function OtherRules({ advice, onManual }: { advice: Advice; onManual: (rule: string) => void }) {
  return (
    <div class="other-rules">
      {advice.cannot_tell.length > 0 && (
        <details>
          <summary>{t('overview.cannotTell', { count: advice.cannot_tell.length })}</summary>
          <ul>
            {advice.cannot_tell.map(({ rule, reason, hint }) => (
              <li key={rule}>
                <RuleButton rule={rule} onManual={onManual} />{' '}
                <Said advice={advice} text={reason} />{' '}
                <span class="dim">
                  <Said advice={advice} text={hint} />
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
      {advice.clear.length > 0 && (
        <details>
          <summary>{t('overview.clear', { count: advice.clear.length })}</summary>
          <ul>
            {advice.clear.map((rule) => (
              <li key={rule}>
                <RuleButton rule={rule} onManual={onManual} />{' '}
                <span class="dim">
                  <Said advice={advice} text={advice.clear_because?.[rule] ?? ''} />
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

function RuleButton({ rule, onManual }: { rule: string; onManual: (rule: string) => void }) {
  return (
    <button type="button" class="chip mono" onClick={() => onManual(rule)}>
      {rule}
    </button>
  );
}

interface ManualAnswer {
  readonly rule: string;
  readonly title: string;
  readonly text: string;
  readonly chinese: { readonly title: string; readonly text: string };
}

/** The manual of a rule, as `strobe explain` prints it. */
function Manual({ rule, onDone }: { rule: string; onDone: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const answer = useAnswer<ManualAnswer>(`rules/${encodeURIComponent(rule)}`);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="manual" aria-labelledby="manual-title" onClose={onDone}>
      <header>
        <h2 id="manual-title" class="mono">
          {rule}
        </h2>
        <button type="button" onClick={() => dialog.current?.close()}>
          {t('shell.close')}
        </button>
      </header>
      <Loaded of={answer}>
        {(value) => {
          const manual = language.value === 'zh' ? value.chinese : value;
          return (
            <>
              <p>
                <strong>{manual.title}</strong>
              </p>
              <ManualText text={manual.text} />
            </>
          );
        }}
      </Loaded>
    </dialog>
  );
}

/** Headings, paragraphs and lists: all the Markdown that manuals use. */
function ManualText({ text }: { text: string }) {
  const blocks = text
    .trim()
    .split(/\n\s*\n/)
    .flatMap((block) =>
      /^## /.test(block) && block.includes('\n')
        ? [block.slice(0, block.indexOf('\n')), block.slice(block.indexOf('\n') + 1)]
        : [block],
    );
  return (
    <>
      {blocks.map((block, at) => {
        if (block.startsWith('## ')) return <h3 key={at}>{block.slice(3)}</h3>;
        if (block.startsWith('- '))
          return (
            <ul key={at}>
              {block.split(/\n(?=- )/).map((item, index) => (
                <li key={index}>
                  <Inline text={item.slice(2)} />
                </li>
              ))}
            </ul>
          );
        return (
          <p key={at}>
            <Inline text={block} />
          </p>
        );
      })}
    </>
  );
}

function Inline({ text }: { text: string }) {
  return (
    <>
      {text.split('`').map((piece, at) => (at % 2 === 1 ? <code key={at}>{piece}</code> : piece))}
    </>
  );
}
