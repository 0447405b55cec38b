import { useLocation, useSearch } from 'wouter';
import { useScope } from '../../api/data';
import { useLanguage } from '../../i18n';
import { Segmented } from '../../ui/fields';
import { ConfigsView } from './configs';
import { FileView } from './file';
import { SweepView } from './sweep';

type View = 'file' | 'sweep' | 'configs';

export default function CommandPage() {
  const { t } = useLanguage();
  const [, go] = useLocation();
  const scope = useScope();
  const asked = new URLSearchParams(useSearch()).get('view');
  const view: View = asked === 'sweep' || asked === 'file' ? asked : 'configs';
  const show = (next: View) => go(next === 'configs' ? '/command' : `/command?view=${next}`);
  return (
    <>
      <header className="page-head">
        <h1>{t('nav.command')}</h1>
        <Segmented<View>
          label={t('view.label')}
          value={view}
          onChange={show}
          options={[
            ['configs', t('command.configs')],
            ['file', t('command.file')],
            ['sweep', t('command.sweep')],
          ]}
        />
      </header>
      {scope === 'read' && <p className="muted lead">{t('command.readonly')}</p>}
      {view === 'configs' && <ConfigsView />}
      {view === 'file' && <FileView />}
      {view === 'sweep' && <SweepView onEdit={() => show('file')} />}
    </>
  );
}
