import {useState} from 'preact/hooks';
import {apiKey, keyWanted, setKey} from '../api/client';
import {useStore} from '../store';
import {Dialog} from './dialog';
import {readServer} from './server_state';

/** Asks for the API key once the server wants one. */
export function KeyDialog() {
  const open = useStore(keyWanted);
  const refused = useStore(apiKey) !== '';
  const [key, change] = useState('');
  const [remember, setRemember] = useState(false);
  const submit = (event: Event) => {
    event.preventDefault();
    if (!key.trim()) return;
    setKey(key.trim(), remember);
    change('');
    void readServer();
  };
  return (
    <Dialog title="API key" open={open} close={() => keyWanted.set(false)}>
      <form class="fields" onSubmit={submit}>
        <p>{refused ? 'That key is not one of this server’s.' : 'This server was started with --api-key.'}</p>
        <label>
          Key
          <input type="password" autocomplete="off" value={key} onInput={(event) => change(event.currentTarget.value)} />
        </label>
        <label class="tick">
          <input type="checkbox" checked={remember} onChange={(event) => setRemember(event.currentTarget.checked)} />
          Keep it in this browser, also after the tab is closed
        </label>
        <button class="primary">Use this key</button>
      </form>
    </Dialog>
  );
}
