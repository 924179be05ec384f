import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';
import {Dialog} from '../shell/dialog';
import {Icon} from '../shell/icons';
import {server} from '../shell/server_state';
import {useStore} from '../store';
import {bytes, count} from '../text/format';
import {announcement, running, stop} from './answering';
import {Composer} from './composer';
import {conversations, openId} from './conversations';
import {MessageView} from './message_view';
import {chatSettings} from './settings';
import {SettingsPanel} from './settings_panel';
import {path, type Conversation} from './tree';
import type {Plan} from '../api/types';

function modelFacts(plan: Plan): string {
  const {model, context} = plan;
  const experts = model.experts > 0 ? `${model.experts_used} of ${model.experts} experts for each token · ` : '';
  return `${model.architecture} · ${bytes(model.bytes)} · ${experts}context ${count(context)}`;
}

function Welcome() {
  const {props, plan} = useStore(server);
  return (
    <div class="welcome">
      <h1>{props?.model_alias ?? 'coterie'}</h1>
      {plan && <p>{modelFacts(plan)}</p>}
      <p class="note">
        <kbd>Enter</kbd> sends, <kbd>Shift</kbd>+<kbd>Enter</kbd> begins a line, <kbd>Esc</kbd> stops an answer. Text files can be
        dropped anywhere.
      </p>
    </div>
  );
}

/** Keeps the end in sight while an answer grows, unless the reader has gone up. */
function useFollow(conversation: Conversation | undefined) {
  const scroller = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const noticeScroll = () => {
    const box = scroller.current;
    if (box) atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 48;
  };
  useEffect(() => {
    atEnd.current = true;
  }, [conversation?.id]);
  useLayoutEffect(() => {
    const box = scroller.current;
    if (box && atEnd.current) box.scrollTop = box.scrollHeight;
  }, [conversation]);
  return {scroller, noticeScroll, toEnd: () => (atEnd.current = true)};
}

function ChatTools({openSettings}: {openSettings: () => void}) {
  const changed = Object.keys(useStore(chatSettings).values).length;
  const {props} = useStore(server);
  return (
    <div class="chat-tools">
      <span class="model">{props?.model_alias}</span>
      <button type="button" class="quiet" onClick={openSettings}>
        <Icon name="tune" />
        <span>Settings{changed > 0 ? ` (${changed})` : ''}</span>
      </button>
    </div>
  );
}

export function ChatView() {
  const all = useStore(conversations);
  const id = useStore(openId);
  const answers = useStore(running);
  const said = useStore(announcement);
  const [settingsOpen, setSettingsOpen] = useState(false);
  const conversation = all.find((one) => one.id === id);
  const {scroller, noticeScroll, toEnd} = useFollow(conversation);
  const answering = Object.values(answers).some((answer) => answer.conversation === id);
  useEffect(() => {
    const stopOnEscape = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !event.defaultPrevented && !document.querySelector('dialog[open]')) stop(openId.value);
    };
    window.addEventListener('keydown', stopOnEscape);
    return () => window.removeEventListener('keydown', stopOnEscape);
  }, []);
  return (
    <div class="chat">
      <ChatTools openSettings={() => setSettingsOpen(true)} />
      <div class="scroller" ref={scroller} onScroll={noticeScroll}>
        {!conversation && <Welcome />}
        {conversation && (
          <ol class="messages" aria-label="Messages" aria-busy={answering}>
            {path(conversation).map((message) => (
              <MessageView key={message.id} conversation={conversation} message={message} busy={answering} promptRead={answers[message.id]?.promptRead} />
            ))}
          </ol>
        )}
      </div>
      <p class="unseen" role="status">
        {said}
      </p>
      <Composer answering={answering} sent={toEnd} />
      <Dialog title="Settings" side="right" open={settingsOpen} close={() => setSettingsOpen(false)}>
        <SettingsPanel />
      </Dialog>
    </div>
  );
}
