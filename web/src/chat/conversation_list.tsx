import {useEffect, useState} from 'preact/hooks';
import {Icon} from '../shell/icons';
import {goTo} from '../shell/route';
import {useStore} from '../store';
import {ago} from '../text/format';
import {stop} from './answering';
import {conversations, openId, put, remove, settle, storageProblem} from './conversations';
import {asMarkdown, type Conversation} from './tree';

const kUndoFor = 8000; // milliseconds

function download(conversation: Conversation): void {
  const url = URL.createObjectURL(new Blob([asMarkdown(conversation)], {type: 'text/markdown'}));
  const link = document.createElement('a');
  link.href = url;
  link.download = `${conversation.title.replace(/[^\p{L}\p{N} _-]/gu, '').trim() || 'conversation'}.md`;
  link.click();
  URL.revokeObjectURL(url);
}

function Row({conversation, done, removed}: {conversation: Conversation; done?: () => void; removed: (gone: Conversation) => void}) {
  const open = useStore(openId) === conversation.id;
  const title = conversation.title || 'Without a text';
  const show = () => {
    openId.set(conversation.id);
    goTo('chat');
    done?.();
  };
  const drop = () => {
    stop(conversation.id);
    remove(conversation.id);
    removed(conversation);
  };
  return (
    <li class={open ? 'open' : ''}>
      <button type="button" class="title" aria-current={open ? 'true' : undefined} onClick={show}>
        <span>{title}</span>
        <time>{ago(conversation.changed, Date.now())}</time>
      </button>
      <span class="row-actions">
        <button type="button" class="quiet" aria-label={`Save as Markdown: ${title}`} title="Save as Markdown" onClick={() => download(conversation)}>
          <Icon name="save" />
        </button>
        <button type="button" class="quiet" aria-label={`Delete: ${title}`} title="Delete" onClick={drop}>
          <Icon name="remove" />
        </button>
      </span>
    </li>
  );
}

export function ConversationList({done}: {done?: () => void}) {
  const all = useStore(conversations);
  const problem = useStore(storageProblem);
  const [gone, setGone] = useState<Conversation>();
  useEffect(() => {
    const timer = window.setTimeout(() => setGone(undefined), kUndoFor);
    return () => window.clearTimeout(timer);
  }, [gone]);
  const restore = () => {
    if (gone) put(settle(gone));
    setGone(undefined);
  };
  return (
    <div class="conversations">
      <ul aria-label="Conversations">
        {all.map((conversation) => (
          <Row key={conversation.id} conversation={conversation} done={done} removed={setGone} />
        ))}
      </ul>
      {all.length === 0 && !problem && <p class="note">Conversations stay in this browser.</p>}
      {problem && <p class="note">{problem}</p>}
      <div role="status">
        {gone && (
          <div class="undo">
            Deleted.
            <button type="button" onClick={restore}>
              Undo
            </button>
          </div>
        )}
      </div>
    </div>
  );
}
