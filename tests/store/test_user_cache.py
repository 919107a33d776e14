import stat

from strobe.store.user_cache import user_cache


def test_it_is_of_this_user_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert stat.S_IMODE(user_cache().stat().st_mode) == 0o700 and user_cache() == user_cache()


def test_a_folder_that_others_may_read_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    usual = user_cache()
    usual.chmod(0o755)
    assert user_cache() != usual and stat.S_IMODE(user_cache().stat().st_mode) == 0o700
