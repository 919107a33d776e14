import { render } from 'preact';
import './theme.css';
import './base.css';
import { Shell } from './shell';

render(<Shell />, document.getElementById('app')!);
