package windrow;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.Serializable;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.time.Instant;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.util.SerializableConfiguration;
import scala.Option;

/**
 * Compares a file with the plan. Also runs on executors.
 *
 * A local file is compared before its first row and after its last one. A remote file is asked for
 * once, while it is read and after it has been opened: what is open stays the same file, since S3A
 * reads only the ETag that it opened, and HDFS never changes the bytes of a block.
 */
public final class FileCheck {
    // The columns of `PlannedFiles.java`.
    public static final String TIME = "windrow_time_us";
    public static final String ETAG = "windrow_etag";

    private static final ExecutorService THREADS = Executors.newCachedThreadPool(
        new Daemons("windrow-file-check"));

    private final PartitionedFile file;
    private FileSystem system;
    private Future state;

    /**
     * Starts to compare a file.
     *
     * @param settings Hadoop's, for remote files; null for local ones.
     */
    public FileCheck(PartitionedFile file, Broadcast settings) {
        this.file = file;
        if (settings == null) {
            requireLocal();
        } else {
            try {
                this.system = hadoopPath().getFileSystem(
                    ((SerializableConfiguration) settings.value()).value());
            } catch (IOException error) {
                throw unreadable(error);
            }
        }
    }

    /** Notes that Spark's reader has opened the file. */
    public void opened() {
        if (system == null) return;
        final FileSystem remote = system;
        final org.apache.hadoop.fs.Path path = hadoopPath();
        state = THREADS.submit(new Callable() {
            @Override
            public Object call() throws IOException {
                return remote.getFileStatus(path);
            }
        });
    }

    /** Compares the file after its last row. */
    public void end() {
        if (system == null) {
            requireLocal();
            return;
        }
        if (state == null) return;
        try {
            requireRemote((FileStatus) state.get());
            state = null;
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("the task was stopped");
        } catch (ExecutionException error) {
            if (error.getCause() instanceof FileNotFoundException) throw vanished();
            throw unreadable(error.getCause());
        }
    }

    /** Fails if a remote file that cannot be read is not the one of the plan. */
    public void failed() {
        if (system == null) return;
        try {
            requireRemote(system.getFileStatus(hadoopPath()));
        } catch (FileNotFoundException error) {
            throw vanished();
        } catch (IOException error) {
            // The reader's own error says more.
            return;
        }
    }

    /** Returns the file's name for messages. */
    public String name() {
        if (system == null) return localPath().toString();
        return hadoopPath().toString();
    }

    private org.apache.hadoop.fs.Path hadoopPath() {
        return new org.apache.hadoop.fs.Path(file.filePath().toUri());
    }

    /** Returns a file's path, whose URI has letters that only Hadoop leaves without escapes. */
    private Path localPath() {
        StringBuilder escaped = new StringBuilder("file://");
        for (byte part : file.filePath().toUri().getRawPath().getBytes(StandardCharsets.UTF_8)) {
            if (part < 0) escaped.append('%').append(Integer.toHexString(part & 255));
            else escaped.append((char) part);
        }
        return Paths.get(URI.create(escaped.toString()));
    }

    private void requireLocal() {
        Path path = localPath();
        try {
            compare("size in bytes", file.fileSize(), Files.size(path));
            // Spark's own time has milliseconds.
            long time = time();
            // Files of tables with a log never change, and have no time here.
            if (time == Long.MIN_VALUE) return;
            Instant changed = Files.getLastModifiedTime(path).toInstant();
            compare(
                "modification time in microseconds", time,
                changed.getEpochSecond() * 1000000L + changed.getNano() / 1000);
        } catch (NoSuchFileException error) {
            throw vanished();
        } catch (IOException error) {
            throw unreadable(error);
        }
    }

    private void requireRemote(FileStatus status) {
        compare("size in bytes", file.fileSize(), status.getLen());
        Option etag = file.otherConstantMetadataColumnValues().get(ETAG);
        if (etag.isDefined() && status instanceof EtagSource) {
            String now = ((EtagSource) status).getEtag();
            if (now != null) {
                String plain = now.startsWith("W/") ? now.substring(2) : now;
                plain = plain.replace("\"", "");
                if (!plain.equals(etag.get())) throw changed("ETag", (String) etag.get(), plain);
                return;
            }
        }
        long time = time();
        if (time == Long.MIN_VALUE) return;
        // Object stores state whole seconds when they are asked for one object.
        long unit = "hdfs".equals(system.getScheme()) ? 1000L : 1000000L;
        long now = status.getModificationTime() * 1000L;
        compare(
            "modification time in microseconds", Math.floorDiv(time, unit) * unit,
            Math.floorDiv(now, unit) * unit);
    }

    private long time() {
        return ((Long) file.otherConstantMetadataColumnValues().apply(TIME)).longValue();
    }

    private void compare(String what, long planned, long now) {
        if (now != planned) throw changed(what, String.valueOf(planned), String.valueOf(now));
    }

    private RuntimeException changed(String what, String planned, String now) {
        return new IllegalStateException(
            "file '" + name() + "' has changed since the plan was made: " + what + " was " + planned
            + " and is " + now);
    }

    private RuntimeException vanished() {
        return new IllegalStateException(
            "file '" + name() + "' has vanished since the plan was made");
    }

    private RuntimeException unreadable(Throwable error) {
        return new IllegalStateException("file '" + name() + "' cannot be read: " + error);
    }

    /** Makes threads that do not keep a process alive. */
    static final class Daemons implements ThreadFactory {
        private final String name;

        Daemons(String name) {
            this.name = name;
        }

        @Override
        public Thread newThread(Runnable work) {
            Thread thread = new Thread(work, name);
            thread.setDaemon(true);
            return thread;
        }
    }
}
