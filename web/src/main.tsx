import {render} from 'preact';
import {App} from './app';
import {loadConversations, saveAll} from './chat/conversations';
import {readServer} from './shell/server_state';
import {keepTheme} from './shell/theme';
import 'uplot/dist/uPlot.min.css';
import './styles/tokens.css';
import './styles/shell.css';
import './styles/controls.css';
import './styles/chat.css';
import './styles/prose.css';
import './styles/measures.css';

keepTheme();
void readServer();
void loadConversations();
window.addEventListener('pagehide', saveAll);
const root = document.getElementById('page');
if (root) render(<App />, root);
