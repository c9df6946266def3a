-- own_path: the search path that holds now, to be put back later.
SELECT current_setting('search_path')
