import {useEffect} from 'preact/hooks';
import type {Memory, Plan, PlanLayer} from '../api/types';
import {Meter, type Part} from '../cache/meter';
import {kDeviceColours} from '../cache/palette';
import {readServer, server} from '../shell/server_state';
import {useStore} from '../store';
import {byteRate, bytes, count} from '../text/format';

function partsOf(memory: Memory, experts: string): Part[] {
  return [
    {name: 'Weights of every token', value: memory.dense_bytes, kind: 'dense'},
    {name: 'KV cache', value: memory.kv_bytes, kind: 'kv'},
    {name: 'Workspace', value: memory.workspace_bytes, kind: 'work'},
    {name: 'Experts', value: memory.expert_bytes, kind: experts},
  ];
}

function Place({memory, experts, note}: {memory: Memory; experts: string; note?: string}) {
  const parts = partsOf(memory, experts);
  const used = parts.reduce((sum, part) => sum + part.value, 0);
  const whole = memory.capacity_bytes;
  return (
    <section class="panel" aria-label={memory.name}>
      <h2>{memory.name}</h2>
      <Meter name={note ?? 'Set aside'} parts={parts} whole={whole} told={whole > 0 ? `${bytes(used)} of ${bytes(whole)}` : bytes(used)} />
      <dl>
        {parts.map((part) => (
          <>
            <dt>
              <i class={`swatch ${part.kind}`} />
              {part.name}
            </dt>
            <dd>{part.value > 0 ? bytes(part.value) : '–'}</dd>
          </>
        ))}
        {whole > used && (
          <>
            <dt>
              <i class="swatch free" />
              Free
            </dt>
            <dd>{bytes(whole - used)}</dd>
          </>
        )}
        {memory.link_bytes_per_second > 0 && (
          <>
            <dt>Link to RAM</dt>
            <dd>{byteRate(memory.link_bytes_per_second)}</dd>
          </>
        )}
      </dl>
    </section>
  );
}

function LayerRow({layer, index, devices}: {layer: PlanLayer; index: number; devices: number}) {
  return (
    <tr>
      <th scope="row">{index}</th>
      <td>{bytes(layer.dense_bytes)}</td>
      <td>{layer.experts > 0 ? `${count(layer.experts)} × ${bytes(layer.expert_bytes)}` : '–'}</td>
      {Array.from({length: devices}, (_, device) => {
        const slots = layer.slots[device] ?? 0;
        return (
          <td class="share">
            {layer.experts > 0 && (
              <span class="bar">
                {slots > 0 && <span class={`gpu-${device % kDeviceColours}`} style={{width: `${(100 * slots) / layer.experts}%`}} />}
              </span>
            )}
            <span>{layer.experts > 0 ? count(slots) : ''}</span>
          </td>
        );
      })}
    </tr>
  );
}

function Layers({plan}: {plan: Plan}) {
  return (
    <section class="panel wide" aria-label="Layers">
      <h2>Layers</h2>
      <div class="table" tabIndex={0} role="region" aria-label="What each layer has">
        <table class="layers">
          <thead>
            <tr>
              <th>Layer</th>
              <th>Of every token</th>
              <th>Experts</th>
              {plan.devices.map((_, i) => (
                <th>Slots on GPU {i}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {plan.layers.map((layer, index) => (
              <LayerRow layer={layer} index={index} devices={plan.devices.length} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function summary({model, context, devices, exclusive}: Plan): string {
  const experts = model.experts > 0 ? `, ${model.experts_used} of ${model.experts} experts for each token` : '';
  const where =
    devices.length === 0
      ? 'The CPU computes everything.'
      : exclusive
        ? 'RAM keeps only the experts that no GPU holds.'
        : 'Slots hold the experts in use; RAM has them all.';
  return `${model.id}: ${model.architecture}, ${bytes(model.bytes)}${experts}, a context of ${count(context)} tokens. ${where}`;
}

export function PlanView() {
  const {plan} = useStore(server);
  useEffect(() => void readServer(), []);
  return (
    <div class="view">
      <h1>What sits where</h1>
      {plan && (
        <>
          <p class="lead">{summary(plan)}</p>
          <div class="panels">
            {plan.devices.map((device, i) => (
              <Place memory={device} experts={`gpu-${i % kDeviceColours}`} />
            ))}
            <Place memory={plan.ram} experts="ram" note={plan.exclusive ? 'Needed beside the devices' : 'Needed'} />
            <Layers plan={plan} />
          </div>
          <p class="note">
            <code>--vram</code>, <code>--expert-cache</code> and <code>-c</code> change it; <code>coterie plan</code> shows other
            plans without loading the model.
          </p>
        </>
      )}
    </div>
  );
}
