import 'tabtune/worker';
