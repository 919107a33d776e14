/** What the server says about a run as a whole; see `strobe show --json` and `strobe advise --json`. */

export interface Evidence {
  readonly table: string;
  readonly rows: readonly Readonly<Record<string, string | number | boolean | null>>[];
}

/** A number that a share is derived from. */
export interface Figure {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
}

export interface Finding {
  readonly rule: string;
  readonly title: string;
  readonly share: number;
  readonly cost_ns: number;
  readonly expected_speedup: number;
  readonly where: string | null;
  readonly fixes: readonly string[];
  readonly evidence: readonly Evidence[];
  /** How the share was computed, where the rule says so. */
  readonly derivation?: readonly Figure[];
  /** What was measured, in a sentence. */
  readonly why?: string;
  /** At least and at most, where the gain depends on what was not measured. */
  readonly speedup_range?: readonly [number, number] | null;
  /** Saved once at each start, where no step gets faster. */
  readonly saves_at_start_ns?: number;
  readonly is_certain: boolean;
  readonly is_warning: boolean;
}

export interface Advice {
  readonly verdict: string;
  readonly findings: readonly Finding[];
  /** What was not the training's fault, and must be known to judge the rest. */
  readonly conditions?: readonly Finding[];
  readonly clear: readonly string[];
  readonly clear_because?: Readonly<Record<string, string>>;
  readonly cannot_tell: readonly {
    readonly rule: string;
    readonly reason: string;
    readonly hint: string;
  }[];
  /** Sentences of all this, by the English ones. */
  readonly chinese?: Readonly<Record<string, string>>;
}

export interface Summary {
  readonly run: {
    readonly command: readonly string[];
    readonly recorded_by: string;
    readonly hosts: readonly string[];
    readonly frameworks: Readonly<Record<string, string>>;
    readonly dur_ns: number | null;
    readonly state: string;
    readonly state_means: string;
    readonly exit_code: number | null;
    readonly ranks: readonly { readonly rank: number; readonly state: string }[];
    readonly world_size: number | null;
  };
  readonly recorded: {
    readonly steps: number;
    readonly steps_in_full: number;
    readonly events: number;
    readonly operators: number;
    readonly operator_steps: number;
  };
  readonly steps: {
    readonly count: number;
    readonly parts: readonly {
      readonly part: string;
      readonly mean_ns: number;
      readonly share: number;
    }[];
  };
  readonly devices: readonly {
    readonly rank: number;
    readonly device: string;
    readonly dur_ns: number;
    readonly compute_ns: number;
    readonly communication_ns: number;
    readonly memory_ns: number;
    readonly idle_ns: number;
  }[];
  readonly kernels: readonly {
    readonly name: string;
    readonly ns_per_step: number;
    readonly total_ns: number;
    readonly share: number;
    readonly steps: number;
  }[];
  readonly operator_types: readonly {
    readonly name: string;
    readonly calls: number;
    readonly self_ns: number;
    readonly self_ns_per_step: number;
    readonly device_ns_per_step: number | null;
    readonly share: number;
  }[];
  readonly modules: readonly {
    readonly scope: string;
    readonly class: string | null;
    readonly own_ns_per_step: number;
    readonly device_own_ns_per_step: number | null;
    readonly share: number;
  }[];
  readonly machine: {
    readonly process_cores: number | null;
    readonly machine_cores: number | null;
    readonly core_count: number | null;
    readonly core_busy_ratios: readonly number[];
    readonly rss_max_bytes: number | null;
    readonly page_faults_per_s: number | null;
    readonly context_switches_per_s: number | null;
  };
  readonly gc: { readonly pauses: number; readonly total_ns: number; readonly longest_ns: number };
  readonly problems: readonly {
    readonly rank: number | null;
    readonly source: string;
    readonly what: string;
    readonly count: number;
  }[];
}
