/** What the server answers, as far as the page reads it. Sizes are bytes. */

export interface Timings {
  queue_ms: number;
  cache_n: number;
  prompt_n: number;
  prompt_ms: number;
  prompt_per_second: number;
  predicted_n: number;
  predicted_ms: number;
  predicted_per_second: number;
}

export interface PromptProgress {
  total: number;
  cache: number;
  processed: number;
}

export interface ChatChunk {
  choices: {
    delta: {content?: string | null; reasoning_content?: string | null};
    finish_reason: string | null;
  }[];
  timings?: Timings;
  prompt_progress?: PromptProgress;
  error?: {message: string};
}

export interface Props {
  model_alias: string;
  total_slots: number;
  default_generation_settings: {n_ctx: number; n_predict: number; params: Record<string, number | string[]>};
}

export interface CacheDevice {
  id: number;
  resident: number;
  slot_bytes: number;
  hits: number;
  uploads: number;
  fetches: number;
  moved_bytes: number;
  evictions: number;
  failures: number;
  lost: boolean;
}

export interface CacheLayer {
  layer: number;
  experts: number;
  expert_bytes: number;
  slots: number[];
  device: number[]; // [experts] that holds each; -1: none
  uses: number[];
  misses: number[];
}

export interface Cache {
  seconds: number;
  experts_used: number;
  hits: number;
  misses: number;
  work: {
    waiting: number;
    running: number;
    prompt_tokens: number;
    cached_tokens: number;
    generated_tokens: number;
    kept_sequences: number;
  };
  memory: {kv_bytes: number; kv_used_bytes: number; ram_bytes: number};
  devices: CacheDevice[];
  layers: CacheLayer[];
}

export interface Memory {
  name: string;
  capacity_bytes: number; // 0: not known
  link_bytes_per_second: number;
  dense_bytes: number;
  kv_bytes: number;
  workspace_bytes: number;
  expert_bytes: number;
}

export interface PlanLayer {
  dense_bytes: number;
  expert_bytes: number;
  experts: number;
  slots: number[];
}

export interface Plan {
  model: {id: string; architecture: string; bytes: number; experts: number; experts_used: number};
  context: number;
  exclusive: boolean;
  devices: Memory[];
  ram: Memory;
  layers: PlanLayer[];
}
