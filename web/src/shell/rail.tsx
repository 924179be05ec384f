import {setKey, apiKey} from '../api/client';
import {ConversationList} from '../chat/conversation_list';
import {openId} from '../chat/conversations';
import {useStore} from '../store';
import {Icon, Mark, type IconName} from './icons';
import {goTo, route, type Route} from './route';
import {nextTheme, theme} from './theme';

const places: {to: Route; name: string; icon: IconName}[] = [
  {to: 'chat', name: 'Chat', icon: 'chat'},
  {to: 'cache', name: 'Cache', icon: 'cache'},
  {to: 'plan', name: 'Plan', icon: 'plan'},
];

/** The three views: a column on wide screens, a bar at the foot of narrow ones. */
export function Places({class: name}: {class: string}) {
  const here = useStore(route);
  return (
    <nav class={name} aria-label="Views">
      {places.map(({to, name, icon}) => (
        <a href={`#${to}`} aria-current={here === to ? 'page' : undefined}>
          <Icon name={icon} />
          {name}
        </a>
      ))}
    </nav>
  );
}

export function NewChat({done}: {done?: () => void}) {
  const begin = () => {
    openId.set('');
    goTo('chat');
    done?.();
    requestAnimationFrame(() => document.getElementById('prompt')?.focus());
  };
  return (
    <button type="button" class="new-chat" onClick={begin}>
      <Icon name="add" />
      New chat
    </button>
  );
}

function ThemeButton() {
  const now = useStore(theme);
  const label = {auto: 'as the system', light: 'light', dark: 'dark'}[now];
  return (
    <button type="button" class="quiet" onClick={() => theme.set(nextTheme(now))}>
      <Icon name={now} />
      <span>Colours: {label}</span>
    </button>
  );
}

function ForgetKey() {
  if (!useStore(apiKey)) return null;
  return (
    <button type="button" class="quiet" onClick={() => setKey('', false)}>
      <Icon name="key" />
      <span>Forget the API key</span>
    </button>
  );
}

/** Conversations and what concerns the whole page. */
export function RailContent({done}: {done?: () => void}) {
  return (
    <>
      <NewChat done={done} />
      <ConversationList done={done} />
      <footer>
        <ForgetKey />
        <ThemeButton />
        <a class="licences" href="/assets/licences.txt" target="_blank">
          Licences of the parts
        </a>
      </footer>
    </>
  );
}

export function Rail() {
  return (
    <aside class="rail" aria-label="Conversations and views">
      <div class="brand">
        <Mark />
        coterie
      </div>
      <Places class="places" />
      <RailContent />
    </aside>
  );
}
