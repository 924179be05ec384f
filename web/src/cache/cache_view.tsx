import {useEffect} from 'preact/hooks';
import type {Cache, Plan} from '../api/types';
import {server} from '../shell/server_state';
import {useStore} from '../store';
import {byteRate, bytes, count, percent, plural, significant} from '../text/format';
import {Curve} from './curve';
import {HeatMap} from './heat_map';
import {Meter} from './meter';
import {kDeviceColours} from './palette';
import {watchCache, watched, type Watched} from './watch';

const deviceColour = (index: number) => `--gpu-${index % kDeviceColours}-line`;

function Legend({cache}: {cache: Cache}) {
  if (cache.devices.length === 0) {
    return (
      <ul class="legend" aria-label="Colours">
        <li>
          <i class="ramp ram" /> computed by the CPU: idle to hot
        </li>
      </ul>
    );
  }
  return (
    <ul class="legend" aria-label="Colours">
      {cache.devices.map((device) => (
        <li>
          <i class={`ramp gpu-${device.id % kDeviceColours}`} /> resident on GPU {device.id}: idle to hot
        </li>
      ))}
      <li>
        <i class="ramp missed" /> in RAM only: idle to missed
      </li>
    </ul>
  );
}

/** What to do where there is nothing to watch. */
function NoDevice() {
  return (
    <aside class="hint">
      <h2>No device holds experts</h2>
      <p>
        The CPU computes all of them, so nothing is hit or missed; the map shows how often each is used. To see a cache at work
        without a GPU, give the server two simulated ones:
      </p>
      <pre tabIndex={0}>coterie serve -m model.gguf --fake-gpu 2x4G@10G/s</pre>
      <p>
        The built-in demo model takes <code>--fake-gpu 2x4M@10G/s --expert-cache 28</code>. Where a server has a GPU and yet none is
        shown here, its log says why.
      </p>
    </aside>
  );
}

function hitText(share: number | null | undefined): string {
  return share === null || share === undefined ? 'idle' : percent(share);
}

function Curves({state, plan}: {state: Watched; plan: Plan | undefined}) {
  const {cache, moments} = state;
  if (!cache) return null;
  const times = moments.map((moment) => moment.time);
  const rates = moments.map((moment) => moment.rates);
  const latest = rates.at(-1);
  const link = latest?.link.reduce((sum, value) => sum + value, 0) ?? 0;
  const limit = plan?.devices.reduce((sum, device) => sum + device.link_bytes_per_second, 0) ?? 0;
  const linkText = limit > 0 ? `${byteRate(link)} of ${byteRate(limit)}` : byteRate(link);
  return (
    <div class="curves">
      <Curve title="Tokens written" now={`${significant(latest?.written ?? 0)}/s`} times={times} show={(v) => significant(v)}
        series={[{colour: '--accent', values: rates.map((rate) => rate.written)}]} />
      {cache.devices.length > 0 && (
        <Curve title="Hit rate" now={hitText(latest?.hitRate)} times={times} most={1} show={percent}
          series={[{colour: '--accent', values: rates.map((rate) => rate.hitRate)}]} />
      )}
      {cache.devices.length > 0 && (
        <Curve title={cache.devices.length > 1 ? 'Over the links' : 'Over the link'} now={linkText} times={times} least={1000} show={byteRate}
          series={cache.devices.map((_, i) => ({colour: deviceColour(i), values: rates.map((rate) => rate.link[i] ?? 0)}))} />
      )}
      {cache.devices.length === 0 && (
        <Curve title="Prompt tokens read" now={`${significant(latest?.read ?? 0)}/s`} times={times} show={(v) => significant(v)}
          series={[{colour: '--gpu-1-line', values: rates.map((rate) => rate.read)}]} />
      )}
    </div>
  );
}

function Memory({cache, plan}: {cache: Cache; plan: Plan | undefined}) {
  const {memory} = cache;
  return (
    <section class="panel" aria-label="Memory">
      <h2>Memory</h2>
      {cache.devices.map((device, i) => {
        const place = plan?.devices[i];
        const rest = place ? place.dense_bytes + place.kv_bytes + place.workspace_bytes : 0;
        const whole = place?.capacity_bytes ?? 0;
        const used = rest + device.slot_bytes;
        return (
          <Meter name={place?.name ?? `GPU ${i}`} whole={whole} told={whole > 0 ? `${bytes(used)} of ${bytes(whole)}` : bytes(used)}
            parts={[
              {name: 'weights of every token, KV cache, workspace', value: rest, kind: 'dense'},
              {name: 'slots for experts', value: device.slot_bytes, kind: `gpu-${i % kDeviceColours}`},
            ]} />
        );
      })}
      <Meter name="RAM" whole={plan?.ram.capacity_bytes ?? 0} told={plan ? `${bytes(memory.ram_bytes)} of ${bytes(plan.ram.capacity_bytes)}` : bytes(memory.ram_bytes)}
        parts={[{name: 'in use', value: memory.ram_bytes, kind: 'ram'}]} />
      <Meter name="KV cache" whole={memory.kv_bytes} told={`${bytes(memory.kv_used_bytes)} of ${bytes(memory.kv_bytes)}`}
        parts={[{name: 'pages in use', value: memory.kv_used_bytes, kind: 'kv'}]} />
    </section>
  );
}

function Work({cache, slots}: {cache: Cache; slots: number}) {
  const {work} = cache;
  const places = Array.from({length: Math.max(slots, work.running)}, (_, i) => i < work.running);
  return (
    <section class="panel" aria-label="Requests">
      <h2>Requests</h2>
      <div class="slots" role="img" aria-label={`${work.running} of ${slots} slots are busy, ${plural(work.waiting, 'request')} wait`}>
        {places.map((busy) => (
          <i class={busy ? 'busy' : ''} />
        ))}
        <span class="figures">{work.waiting > 0 ? `${count(work.waiting)} waiting` : 'none waiting'}</span>
      </div>
      <dl>
        <dt>Answering</dt>
        <dd>{`${work.running} of ${slots}`}</dd>
        <dt>Tokens written</dt>
        <dd>{count(work.generated_tokens)}</dd>
        <dt>Prompt tokens read</dt>
        <dd>{count(work.prompt_tokens)}</dd>
        <dt>Prompt tokens reused</dt>
        <dd>{count(work.cached_tokens)}</dd>
        <dt>Conversations kept</dt>
        <dd>{count(work.kept_sequences)}</dd>
      </dl>
    </section>
  );
}

function Devices({cache, link}: {cache: Cache; link: number[] | undefined}) {
  if (cache.devices.length === 0) return null;
  return (
    <section class="panel wide" aria-label="Devices since the start">
      <h2>Since the start</h2>
      <div class="table" tabIndex={0} role="region" aria-label="Counts of each device">
        <table>
          <thead>
            <tr>
              <th>Device</th>
              <th>Experts</th>
              <th>Hits</th>
              <th>Uploads</th>
              <th>Fetches</th>
              <th>Evictions</th>
              <th>Moved</th>
              <th>Link now</th>
            </tr>
          </thead>
          <tbody>
            {cache.devices.map((device) => (
              <tr>
                <th scope="row">
                  GPU {device.id}
                  {device.lost ? ' (lost)' : ''}
                </th>
                <td>{count(device.resident)}</td>
                <td>{count(device.hits)}</td>
                <td>{count(device.uploads)}</td>
                <td>{count(device.fetches)}</td>
                <td>{count(device.evictions)}</td>
                <td>{bytes(device.moved_bytes)}</td>
                <td>{byteRate(link?.[device.id] ?? 0)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="note">
        {cache.hits + cache.misses > 0
          ? `${percent(cache.hits / (cache.hits + cache.misses))} of ${count(cache.hits + cache.misses)} uses of experts hit.`
          : 'No expert was used yet: ask something, and watch.'}
      </p>
    </section>
  );
}

export function CacheView() {
  const state = useStore(watched);
  const {plan, props} = useStore(server);
  useEffect(watchCache, []);
  const {cache} = state;
  return (
    <div class="view">
      <h1>Expert cache</h1>
      {state.problem && <p class="problem">{state.problem}</p>}
      {cache && cache.layers.length === 0 && <p class="note">This model has no routed experts: there is nothing to cache.</p>}
      {cache && cache.layers.length > 0 && (
        <>
          {cache.devices.length === 0 && <NoDevice />}
          <Legend cache={cache} />
          <HeatMap cache={cache} heat={state.heat} />
        </>
      )}
      <Curves state={state} plan={plan} />
      {cache && (
        <div class="panels two">
          <Memory cache={cache} plan={plan} />
          <Work cache={cache} slots={props?.total_slots ?? 0} />
          <Devices cache={cache} link={state.moments.at(-1)?.rates.link} />
        </div>
      )}
    </div>
  );
}
