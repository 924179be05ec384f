import {useState} from 'preact/hooks';
import {server} from '../shell/server_state';
import {useStore} from '../store';
import {chatSettings, readSetting, settings, type Setting} from './settings';

/** What the server takes where nothing is sent. */
function useDefault(setting: Setting): string {
  const defaults = useStore(server).props?.default_generation_settings;
  if (setting.name === 'max_tokens') return String(defaults?.n_predict ?? '');
  const value = defaults?.params[setting.name];
  return typeof value === 'number' ? String(Number(value.toFixed(4))) : '';
}

function Field({setting}: {setting: Setting}) {
  const kept = useStore(chatSettings).values[setting.name];
  const [text, setText] = useState(kept === undefined ? '' : String(kept));
  const {problem} = readSetting(setting, text);
  const byDefault = useDefault(setting);
  const id = `setting-${setting.name}`;
  const change = (next: string) => {
    setText(next);
    const {value, problem} = readSetting(setting, next);
    if (problem) return;
    chatSettings.update(({system, values}) => {
      const {[setting.name]: _, ...others} = values;
      return {system, values: value === undefined ? others : {...others, [setting.name]: value}};
    });
  };
  return (
    <div class="setting">
      <label for={id}>{setting.label}</label>
      <input id={id} inputMode="decimal" autocomplete="off" value={text} placeholder={byDefault} aria-describedby={`${id}-hint`}
        aria-invalid={problem ? 'true' : undefined} onInput={(event) => change(event.currentTarget.value)} />
      <small id={`${id}-hint`} class={problem ? 'problem' : ''}>
        {problem ?? setting.hint}
      </small>
    </div>
  );
}

/** How the next answers are drawn. Empty fields are the server's business. */
export function SettingsPanel() {
  const {system} = useStore(chatSettings);
  const [round, setRound] = useState(0);
  const reset = () => {
    chatSettings.set({system: '', values: {}});
    setRound(round + 1);
  };
  return (
    <div class="fields" key={round}>
      <label>
        System prompt
        <textarea rows={4} value={system} placeholder="None"
          onInput={(event) => chatSettings.update((all) => ({...all, system: event.currentTarget.value}))} />
      </label>
      <div class="settings">
        {settings.map((setting) => (
          <Field setting={setting} />
        ))}
      </div>
      <p class="note">They hold for answers from now on. An empty field takes the server’s default.</p>
      <button type="button" onClick={reset}>
        Back to the defaults
      </button>
    </div>
  );
}
