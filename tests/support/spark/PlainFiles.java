import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The local file system, without starting a process for each file.
 *
 * Without its native library, Hadoop runs `chmod` for each file that it creates, to set permissions
 * that the file already has, and `ls` for each file that it lists.
 */
public final class PlainFiles extends LocalFileSystem {
    public PlainFiles() {
        super(new Raw());
    }

    /** Makes this the local file system of the process. */
    public void install() throws IOException {
        Configuration configuration = new Configuration();
        URI local = URI.create("file:///");
        FileSystem.get(local, configuration).close();
        configuration.setClassLoader(PlainFiles.class.getClassLoader());
        configuration.setClass("fs.file.impl", PlainFiles.class, FileSystem.class);
        // Every later caller gets this file system, whatever its configuration.
        FileSystem.get(local, configuration);
    }

    private static final class Raw extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) {}

        public FileStatus getFileStatus(Path path) throws IOException {
            FileStatus found = super.getFileStatus(path);
            return new FileStatus(
                found.getLen(), found.isDirectory(), found.getReplication(), found.getBlockSize(),
                found.getModificationTime(), found.getAccessTime(), null, null, null,
                found.getPath());
        }
    }
}
