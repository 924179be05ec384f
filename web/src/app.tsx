import {useEffect, useRef, useState} from 'preact/hooks';
import {CacheView} from './cache/cache_view';
import {ChatView} from './chat/chat_view';
import {PlanView} from './plan/plan_view';
import {Dialog} from './shell/dialog';
import {Icon, Mark} from './shell/icons';
import {KeyDialog} from './shell/key_dialog';
import {Places, Rail, RailContent} from './shell/rail';
import {route} from './shell/route';
import {server} from './shell/server_state';
import {keyWanted} from './api/client';
import {useStore} from './store';

/** One line about the server, wherever it has a problem. */
function ServerLine() {
  const {problem} = useStore(server);
  if (!problem) return null;
  return (
    <div class="server-line" role="alert">
      <span>{problem.message}</span>
      {problem.kind === 'key' && (
        <button type="button" onClick={() => keyWanted.set(true)}>
          Enter the key
        </button>
      )}
    </div>
  );
}

export function App() {
  const here = useStore(route);
  const {props} = useStore(server);
  const [drawer, setDrawer] = useState(false);
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = {chat: 'coterie', cache: 'Cache · coterie', plan: 'Plan · coterie'}[here];
  }, [here]);
  const skip = (event: Event) => {
    event.preventDefault();
    main.current?.focus();
  };
  return (
    <div class="page">
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <Rail />
      <header class="top">
        <button type="button" class="quiet" aria-label="Conversations" onClick={() => setDrawer(true)}>
          <Icon name="menu" />
        </button>
        <Mark />
        <span class="top-model">{props?.model_alias ?? 'coterie'}</span>
      </header>
      <main ref={main} tabIndex={-1}>
        <ServerLine />
        {here === 'chat' && <ChatView />}
        {here === 'cache' && <CacheView />}
        {here === 'plan' && <PlanView />}
      </main>
      <Places class="foot" />
      <Dialog title="Conversations" side="left" open={drawer} close={() => setDrawer(false)}>
        <RailContent done={() => setDrawer(false)} />
      </Dialog>
      <KeyDialog />
    </div>
  );
}
